/* The compiler extensions that stepwatch uses, each behind one name. */
#ifndef SW_BASE_COMPILER_H
#define SW_BASE_COMPILER_H

#define SW__LIKELY(x) __builtin_expect(!!(x), 1)
#define SW__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SW__COLD __attribute__((cold, noinline))
#define SW__NOINLINE __attribute__((noinline))
#define SW__HOT __attribute__((hot, aligned(64)))
#define SW__INLINE static inline __attribute__((always_inline))
#define SW__ALIGNED(n) __attribute__((aligned(n)))
/* Of the library alone: reached without a look into its table of addresses. */
#define SW__HIDDEN __attribute__((visibility("hidden")))
/* Initial-exec thread-local storage: half the cost of the default model in a shared
 * library. Only ever one pointer, for static TLS space is scarce in libraries that are
 * loaded late. */
#define SW__TLS __thread __attribute__((tls_model("initial-exec")))
#define SW__COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__SANITIZE_THREAD__)
#define SW__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SW__TSAN 1
#endif
#endif
#ifndef SW__TSAN
#define SW__TSAN 0
#endif

#endif
