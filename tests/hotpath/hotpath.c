/* Proof that recording, once warmed up, calls neither the system nor the heap.
 *
 *   hotpath POLICY
 *
 * A thread warms up and then puts itself under a seccomp filter that lets nothing through: a system call
 * becomes SIGSYS, is counted by its number and made from the handler: who waits for it shall not wait forever. The helper thread and the main
 * thread are not filtered. malloc and its kin are this program's own, and count the calls of the recording
 * thread. Then it records SECTIONS sections with counters and steps among them. Before that the same loop
 * runs without the filter, for the page faults that the kernel counts.
 *
 * Steady means that the helper gets its turn. On a machine that is busy elsewhere it may not, and then the
 * recording thread makes room itself; so each loop has ATTEMPTS attempts, all of which are printed,
 * and one of them must be free of everything. Heap calls are never allowed.
 *
 * Exit status 77 where that cannot be tested: a sanitizer has system calls of its own, and some
 * containers forbid filters. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock_read.h"
#include "base/compiler.h"
#include "base/memory.h"
#include <stepwatch/record.h>
#include <stepwatch/trace.h>

#define SKIPPED 77
#define SECTIONS 2000000
#define WARMUP 1000000
#define ATTEMPTS 5

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                     \
    !defined(__x86_64__) || !defined(__GLIBC__)
int main(void)
{
    puts("skipped: this build or machine has system calls and a heap of its own");
    return SKIPPED;
}
#else

/* The heap, counted. The names behind are those of glibc. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

static _Thread_local bool counting;
static _Atomic unsigned heap_calls;

static void count_heap(void)
{
    if (counting) {
        atomic_fetch_add(&heap_calls, 1);
    }
}

void *malloc(size_t size)
{
    count_heap();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_heap();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    count_heap();
    return __libc_realloc(old, size);
}

void free(void *memory)
{
    count_heap();
    __libc_free(memory);
}

/* System calls that the filter caught, by number. */
static _Atomic unsigned caught[512];
static _Atomic unsigned caught_all;

/* The one place from which the filter lets calls through: what stands behind its instruction. */
extern const char hotpath_behind_call[];

__attribute__((noinline, noclone)) static long long call_system(const greg_t *registers)
{
    long long answer = registers[REG_RAX];
    register long long fourth __asm__("r10") = registers[REG_R10];
    register long long fifth __asm__("r8") = registers[REG_R8];
    register long long sixth __asm__("r9") = registers[REG_R9];
    __asm__ volatile("syscall\n"
                     ".globl hotpath_behind_call\n"
                     "hotpath_behind_call:"
                     : "+a"(answer)
                     : "D"(registers[REG_RDI]), "S"(registers[REG_RSI]),
                       "d"(registers[REG_RDX]), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return answer;
}

static void catch_call(int number, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    (void)number;
    atomic_fetch_add(&caught_all, 1);
    if (info->si_syscall >= 0 && info->si_syscall < (int)SW__COUNTOF(caught)) {
        atomic_fetch_add(&caught[info->si_syscall], 1);
    }
    user->uc_mcontext.gregs[REG_RAX] = (greg_t)info->si_syscall;
    user->uc_mcontext.gregs[REG_RAX] = call_system(user->uc_mcontext.gregs);
}

/* From here on the calling thread can leave a signal handler, make calls in it, and nothing else. */
static bool filter_this_thread(void)
{
    const uint64_t place = (uint64_t)(uintptr_t)hotpath_behind_call;
    const size_t from = offsetof(struct seccomp_data, instruction_pointer);
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)from),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)place, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(from + 4)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(place >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog filter = {.len = SW__COUNTOF(program), .filter = program};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = catch_call;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSYS, &action, NULL) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

static sw_section *outer, *inner;

/* What a program that is recorded in detail does: a section every fraction of a microsecond. */
static void record(int sections)
{
    for (int i = 0; i < sections; i += 2) {
        if (i % 1000 == 0) {
            sw_step_begin();
        }
        sw_begin(outer);
        sw_begin(inner);
        sw_end(inner);
        sw_end(outer);
        if (i % 10 == 0) {
            sw_counter("loss", i);
        }
        if (i % 1000 == 998) {
            sw_step_end();
        }
        for (uint64_t until = sw__clock_now() + 1000; sw__clock_now() < until;) {
        }
    }
}

static struct {
    long faults[ATTEMPTS];
    unsigned calls[ATTEMPTS];
    unsigned loops; /* of SECTIONS sections */
    bool no_faults, no_calls, filtered;
    uint64_t library_heap; /* of all threads */
    _Atomic bool done;
} result;

static long faults_of_loop(void)
{
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    counting = true;
    record(SECTIONS);
    counting = false;
    getrusage(RUSAGE_THREAD, &after);
    result.loops++;
    return after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
}

static unsigned calls_of_loop(void)
{
    unsigned before = atomic_load(&caught_all);
    counting = true;
    record(SECTIONS);
    counting = false;
    result.loops++;
    return atomic_load(&caught_all) - before;
}

static void *record_under_filter(void *arg)
{
    (void)arg;
    record(WARMUP);
    uint64_t allocations = sw__alloc_count();
    for (unsigned i = 0; i < ATTEMPTS && !result.no_faults; i++) {
        result.faults[i] = faults_of_loop();
        result.no_faults = result.faults[i] == 0;
    }
    result.filtered = filter_this_thread();
    for (unsigned i = 0; i < ATTEMPTS && result.filtered && !result.no_calls; i++) {
        result.calls[i] = calls_of_loop();
        result.no_calls = result.calls[i] == 0;
    }
    result.library_heap = sw__alloc_count() - allocations;
    atomic_store(&result.done, true);
    while (
        result.filtered) { /* Not even an end is allowed here; main ends the process. */
        __builtin_ia32_pause();
    }
    return NULL;
}

static bool check_trace(const char *path)
{
    sw_trace *trace;
    sw_error_info info = {0};
    if (sw_trace_open(&trace, path, &info)) {
        printf("the trace cannot be read: %s\n", info.message);
        return false;
    }
    const sw_trace_info *facts = sw_trace_get_info(trace);
    uint64_t calls = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        for (size_t j = 0; j < lane->node_count; j++) {
            calls += lane->nodes[j].calls;
        }
    }
    const uint64_t sections = WARMUP + result.loops * (uint64_t)SECTIONS;
    uint64_t attempted = facts->present + facts->overwritten + facts->dropped;
    printf("calls %llu, present %llu, overwritten %llu, dropped %llu\n",
           (unsigned long long)calls, (unsigned long long)facts->present,
           (unsigned long long)facts->overwritten, (unsigned long long)facts->dropped);
    bool right = calls == sections + sections / 10 && attempted == calls;
    if (!right) {
        printf("%llu calls were made\n", (unsigned long long)(sections + sections / 10));
    }
    sw_trace_free(trace);
    return right;
}

static void remove_run(const char *folder, const char *path)
{
    unlink(path);
    rmdir(folder);
}

int main(int count, char **arguments)
{
    char folder[] = "/tmp/stepwatch-hotpath-XXXXXX";
    char path[1100];
    pthread_t thread;
    const char *policy = count > 1 ? arguments[1] : "ring";
    if (!mkdtemp(folder)) {
        return 1;
    }
    sw_config config = {.out = folder,
                        .policy = policy,
                        .max_mb = 16,
                        .step_usage = SW_OFF,
                        .quiet = SW_ON};
    outer = sw_section_get("outer");
    inner = sw_section_get("inner");
    if (sw_init(&config) ||
        pthread_create(&thread, NULL, record_under_filter, NULL) != 0) {
        return 1;
    }
    (void)sw_trace_path(path, sizeof path);
    while (!atomic_load(&result.done)) {
        usleep(1000);
    }
    sw_shutdown();
    bool passed = check_trace(path);
    remove_run(folder, path);
    printf("%s: heap calls %u (of all threads' recording: %llu)\n", policy,
           atomic_load(&heap_calls), (unsigned long long)result.library_heap);
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        printf("  attempt %u: page faults %ld, system calls %u\n", i + 1,
               result.faults[i], result.calls[i]);
    }
    for (size_t i = 0; i < SW__COUNTOF(caught); i++) {
        if (atomic_load(&caught[i])) {
            printf("  system call number %zu: %u times\n", i, atomic_load(&caught[i]));
        }
    }
    passed = passed && atomic_load(&heap_calls) == 0 && result.no_faults &&
             (result.no_calls || !result.filtered);
    if (passed && !result.filtered) {
        puts("skipped: no seccomp filter can be put in here");
        fflush(stdout);
        _exit(SKIPPED);
    }
    fflush(stdout);
    _exit(passed ? 0 : 1);
}
#endif
