/* Errors of every stepwatch function: 0 is good, a negative sw_error says what went
 * wrong.
 *
 * Functions that can say more take an optional `sw_error_info *`; NULL is always
 * accepted. */
#ifndef STEPWATCH_ERROR_H
#define STEPWATCH_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Code, name and sentence of every error; the one table that all three come from. */
#define SW_ERROR_TABLE(X)                                                                \
    X(-1, SW_EINVAL, "an argument is not valid")                                         \
    X(-2, SW_ENOMEM, "out of memory")                                                    \
    X(-3, SW_ESYS, "a system call failed")                                               \
    X(-4, SW_EOPEN, "the file could not be opened")                                      \
    X(-5, SW_EREAD, "the file could not be read")                                        \
    X(-6, SW_EWRITE, "the file could not be written")                                    \
    X(-7, SW_EFORMAT, "the file is not a stepwatch trace")                               \
    X(-8, SW_EVERSION, "the file was written by a newer, incompatible version")          \
    X(-9, SW_ECORRUPT, "the file is damaged")                                            \
    X(-10, SW_ENOSPACE, "no space is left")                                              \
    X(-11, SW_ELIMIT, "a limit of this process was reached")                             \
    X(-12, SW_ESTATE, "the call is not possible in this state")                          \
    X(-13, SW_EDISABLED, "recording is switched off")                                    \
    X(-14, SW_ENOTFOUND, "there is no such thing")                                       \
    X(-15, SW_EUNSUPPORTED, "this system cannot do that")                                \
    X(-16, SW_EEND, "there are no more records")

enum sw_error {
    SW_OK = 0,
#define SW_ERROR_ENUM(code, name, text) name = code,
    SW_ERROR_TABLE(SW_ERROR_ENUM)
#undef SW_ERROR_ENUM
};

/* Details of a failure, owned by the caller. `message` is one sentence without a final
 * newline; it stays empty when nothing failed. `os_errno` is errno at the failure, or
 * 0. */
typedef struct sw_error_info {
    int code;
    int os_errno;
    char message[512];
} sw_error_info;

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SW_NOPLT __attribute__((noplt)) /* called too often for a detour */
#else
#define SW_NOPLT
#endif
#if defined(__GNUC__)
#define SW_API __attribute__((visibility("default")))
#define SW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SW_API
#define SW_PRINTF(fmt, args)
#endif

/* The name ("SW_ENOMEM") and the sentence of a code; never NULL, also for unknown
 * codes. */
SW_API const char *sw_error_name(int code);
SW_API const char *sw_error_text(int code);

/* Fills `info` (may be NULL) and returns `code`, so that `return sw_error_set(…)` reads
 * well. */
SW_API int sw_error_set(sw_error_info *info, int code, const char *format, ...)
    SW_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
