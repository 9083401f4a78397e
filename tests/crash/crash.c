/* Cases, victims and what they leave behind. */
#include "crash.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Against hangs only; sanitizers on a busy machine are slow. */
#define WATCHDOG_S (CRASH_SANITIZED ? 150u : 60u)
#define SKIPPED 77

const char *crash_victim;
const char *crash_command;
const char *crash_plugin;
const char *crash_host;
char crash_dir[200];
char crash_hot[200];
static unsigned failures;
static int skip_pipe = -1;
static uint64_t random_state;

void crash_fail(const char *file, int line, const char *format, ...)
{
    const char *slash = strrchr(file, '/');
    va_list arguments;
    failures++;
    if (failures > 20) {
        return; /* One reason is enough; thousands hide it. */
    }
    fprintf(stderr, "  %s:%d: ", slash ? slash + 1 : file, line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void crash_equal(const char *file, int line, const char *what, long long left,
                 long long right)
{
    if (left != right) {
        crash_fail(file, line, "%s: %lld and %lld", what, left, right);
    }
}

void crash_between(const char *file, int line, const char *what, long long low,
                   long long value, long long high)
{
    if (value < low || value > high) {
        crash_fail(file, line, "%s is %lld, not from %lld to %lld", what, value, low,
                   high);
    }
}

unsigned crash_failures(void)
{
    return failures;
}

void crash_skip(const char *why)
{
    if (write(skip_pipe, why, strlen(why)) < 0) {
        perror("skip");
    }
    _exit(SKIPPED);
}

uint64_t crash_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t crash_below(uint64_t limit)
{
    return limit ? crash_random() % limit : 0;
}

void crash_sleep_us(uint64_t microseconds)
{
    struct timespec left = {.tv_sec = (time_t)(microseconds / 1000000),
                            .tv_nsec = (long)(microseconds % 1000000) * 1000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

static int remove_one(const char *path, const struct stat *facts, int kind,
                      struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    (void)remove(path);
    return 0;
}

static void remove_all(const char *path)
{
    if (path[0]) {
        (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
}

static void make_folders(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(crash_dir, sizeof(crash_dir), "%.100s/sw-crash-XXXXXX",
             base && base[0] == '/' ? base : "/tmp");
    snprintf(crash_hot, sizeof(crash_hot), "/dev/shm/sw-crash-XXXXXX");
    if (!mkdtemp(crash_dir)) {
        perror(crash_dir);
        exit(99);
    }
    if (!mkdtemp(crash_hot)) {
        /* No memory file system: a folder on disk does as well. */
        snprintf(crash_hot, sizeof(crash_hot), "%.150s/hot", crash_dir);
        (void)mkdir(crash_hot, 0700);
    }
}

/* Runs a case and says what came of it. */
static bool run_case(const struct crash_case *one, unsigned number)
{
    int reason[2];
    char why[200] = "";
    make_folders();
    fflush(stdout);
    if (pipe(reason)) {
        perror("pipe");
        exit(99);
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = fork();
    if (child == 0) {
        close(reason[0]);
        skip_pipe = reason[1];
        (void)fcntl(skip_pipe, F_SETFD, FD_CLOEXEC);
        alarm(WATCHDOG_S);
        one->run();
        fflush(stderr);
        _exit(failures
                  ? 1
                  : 0); /* Not the driver's own handlers, nor a search for its leaks. */
    }
    close(reason[1]);
    ssize_t length = read(reason[0], why, sizeof(why) - 1);
    why[length > 0 ? length : 0] = 0;
    close(reason[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    remove_all(crash_dir);
    remove_all(crash_hot);
    bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    bool good = skipped || status == 0;
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "  the case died from signal %d%s\n", WTERMSIG(status),
                WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    }
    printf("%s %u - %s%s%s\n", good ? "ok" : "not ok", number, one->name,
           skipped ? " # SKIP " : "", skipped ? why : "");
    fprintf(stderr, "%s %s (%.2f s)\n",
            skipped ? "skip"
            : good  ? "ok  "
                    : "FAIL",
            one->name,
            (double)(end.tv_sec - begin.tv_sec) +
                (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
    return good;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 5; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc <= 5;
}

int crash_main(int argc, char **argv, const struct crash_case *cases, size_t count)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s VICTIM COMMAND PLUGIN HOST [CASE…]\n", argv[0]);
        return 2;
    }
    crash_victim = argv[1];
    crash_command = argv[2];
    crash_plugin = argv[3];
    crash_host = argv[4];
    const char *seed = getenv("STEPWATCH_TEST_SEED");
    random_state = seed ? strtoull(seed, NULL, 0) : 20240607u;
    printf("# seed %llu\n1..%zu\n", (unsigned long long)random_state, count);
    unsigned bad = 0;
    for (size_t i = 0; i < count; i++) {
        /* Each case has its own sequence, whether the others run or not. */
        uint64_t mine = random_state + i * 1000003u, before = random_state;
        random_state = mine;
        if (!wanted(cases[i].name, argc, argv)) {
            printf("ok %zu - %s # SKIP not asked for\n", i + 1, cases[i].name);
        } else if (!run_case(&cases[i], (unsigned)i + 1)) {
            bad++;
        }
        random_state = before;
    }
    return bad ? 1 : 0;
}

/* ---- victims ---- */

/* A descriptor of the driver that no victim may inherit. */
static void close_on_exec(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static size_t put_env(const char **env, size_t count, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(env[i], entry, length) == 0 && env[i][length] == '=') {
            env[i] = entry[length] ? entry : env[--count];
            return count;
        }
    }
    if (entry[length]) {
        env[count++] = entry;
    }
    return count;
}

static const char *sanitizer_options(const char *name, const char *ours)
{
    static char text[3][600];
    static unsigned next;
    const char *theirs = getenv(name);
    char *out = text[next++ % 3];
    snprintf(out, sizeof(text[0]), "%s=%s%s%s", name, theirs ? theirs : "",
             theirs && *theirs ? ":" : "", ours);
    return out;
}

static const char **make_env(const struct run *run)
{
    static const char *env[64];
    static char out[300], hot[300], path[1024];
    size_t count = 0;
    snprintf(out, sizeof(out), "STEPWATCH_OUT=%s%s", run->out ? run->out : crash_dir,
             run->out ? "" : "/run");
    snprintf(hot, sizeof(hot), "STEPWATCH_HOT_DIR=%s", crash_hot);
    snprintf(path, sizeof(path), "PATH=%.1000s",
             getenv("PATH") ? getenv("PATH") : "/bin");
    env[count++] = path;
    env[count++] = out;
    env[count++] = hot;
    env[count++] = "LC_ALL=C";
    /* A sanitizer must not answer the very signals that these tests are about. */
    env[count++] = sanitizer_options(
        "ASAN_OPTIONS", "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:"
                        "allow_user_segv_handler=1:disable_coredump=0");
    env[count++] = sanitizer_options(
        "TSAN_OPTIONS",
        "die_after_fork=0:atexit_sleep_ms=0:handle_segv=0:handle_sigbus=0:handle_abort=0:"
        "report_signal_unsafe=0:disable_coredump=0");
    env[count++] = sanitizer_options("UBSAN_OPTIONS", "print_stacktrace=1");
    if (run->off) {
        env[count++] = "STEPWATCH_ENABLED=0";
    }
    for (size_t i = 0; run->env && run->env[i]; i++) {
        count = put_env(env, count, run->env[i]);
    }
    env[count] = NULL;
    return env;
}

void run_start_argv(struct run *run, const char *const *argv)
{
    int output[2], complaint[2];
    int memory = memfd_create("page", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, sizeof(struct page)) || pipe(output) ||
        pipe(complaint)) {
        perror("run_start");
        exit(99);
    }
    run->page =
        mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    const char **env = make_env(run);
    pid_t driver = getpid();
    run->pid = fork();
    if (run->pid == 0) {
        dup2(output[1], STDOUT_FILENO);
        dup2(complaint[1], STDERR_FILENO);
        dup2(memory, PAGE_FD);
        close(output[0]);
        close(output[1]);
        close(complaint[0]);
        close(complaint[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != driver) {
            _exit(98);
        }
        if (run->prepare) {
            run->prepare(run->arg);
        }
        execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
        _exit(97);
    }
    close(memory);
    close(output[1]);
    close(complaint[1]);
    close_on_exec(output[0]);
    close_on_exec(complaint[0]);
    run->output = output[0];
    run->complaint = complaint[0];
}

static void start_list(struct run *run, va_list arguments)
{
    const char *argv[16] = {crash_victim};
    size_t count = 1;
    while (count < 15 && (argv[count] = va_arg(arguments, const char *))) {
        count++;
    }
    run_start_argv(run, argv);
}

void run_start(struct run *run, ...)
{
    va_list arguments;
    va_start(arguments, run);
    start_list(run, arguments);
    va_end(arguments);
}

void run_plain(struct run *run, ...)
{
    va_list arguments;
    va_start(arguments, run);
    run->off = true;
    start_list(run, arguments);
    va_end(arguments);
    run_go(run);
    run_finish(run);
    if (strncmp(run->out_text, "result ", 7) != 0 || run->err_text[0]) {
        crash_fail(__FILE__, __LINE__, "unrecorded: status %04x, \"%.100s\", \"%.2000s\"",
                   (unsigned)run->status, run->out_text, run->err_text);
    }
}

void run_whole(struct run *run, ...)
{
    va_list arguments;
    va_start(arguments, run);
    start_list(run, arguments);
    va_end(arguments);
    run_go(run);
    run_finish(run);
}

bool run_ready(struct run *run)
{
    for (unsigned i = 0; !atomic_load(&run->page->ready); i++) {
        siginfo_t info = {0};
        if (i % 16 == 15 &&
            waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid) {
            return atomic_load(&run->page->ready) != 0;
        }
        crash_sleep_us(50);
    }
    return true;
}

void run_go(struct run *run)
{
    atomic_store(&run->page->go, 1);
}

void run_kill(struct run *run, int signal_number)
{
    (void)kill(run->pid, signal_number);
}

static void append(char **text, size_t *length, int *fd)
{
    char part[4096];
    ssize_t got = read(*fd, part, sizeof(part));
    if (got <= 0) {
        close(*fd);
        *fd = -1;
        return;
    }
    char *more = realloc(*text, *length + (size_t)got + 1);
    if (!more) {
        exit(99);
    }
    memcpy(more + *length, part, (size_t)got);
    *length += (size_t)got;
    more[*length] = 0;
    *text = more;
}

void run_finish(struct run *run)
{
    run->out_text = calloc(1, 1);
    run->err_text = calloc(1, 1);
    while (run->output >= 0 || run->complaint >= 0) {
        struct pollfd both[2] = {{.fd = run->output, .events = POLLIN},
                                 {.fd = run->complaint, .events = POLLIN}};
        if (poll(both, 2, -1) < 0) {
            continue;
        }
        if (both[0].revents) {
            append(&run->out_text, &run->out_length, &run->output);
        }
        if (both[1].revents) {
            append(&run->err_text, &run->err_length, &run->complaint);
        }
    }
    while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR) {
    }
    run->status &= ~0x80; /* Whether a core was written is not the victim's doing. */
}

void run_free(struct run *run)
{
    free(run->out_text);
    free(run->err_text);
    if (run->page) {
        munmap(run->page, sizeof(struct page));
    }
    memset(run, 0, sizeof(*run));
}

uint64_t run_done(const struct run *run)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGE_THREADS; i++) {
        sum += atomic_load(&run->page->done[i]);
    }
    return sum;
}

uint64_t run_steps(const struct run *run)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGE_THREADS; i++) {
        sum += atomic_load(&run->page->steps[i]);
    }
    return sum;
}

void crash_check_same(const char *file, int line, const struct run *run,
                      const struct run *plain)
{
    if (run->status != plain->status) {
        crash_fail(file, line, "status %04x, not %04x; stderr: %.3000s",
                   (unsigned)run->status, (unsigned)plain->status, run->err_text);
    }
    if (strcmp(run->out_text, plain->out_text) != 0) {
        crash_fail(file, line, "stdout is \"%.200s\", not \"%.200s\"", run->out_text,
                   plain->out_text);
    }
}

void crash_check_said(const char *file, int line, const struct run *run, bool lost)
{
    const char *text = run->err_text;
    unsigned lines = 0;
    bool ours = true;
    for (const char *at = text, *end; *at && ours; at = end + 1, lines++) {
        end = strchr(at, '\n');
        ours = end && strncmp(at, "stepwatch: ", 11) == 0;
        if (!end) {
            break;
        }
    }
    const unsigned most = run->sessions ? run->sessions : 1;
    if (lost && (!ours || lines == 0 || lines > most)) {
        crash_fail(file, line, "something was lost and stderr is \"%.2000s\"", text);
    } else if (!lost && text[0]) {
        crash_fail(file, line, "nothing was lost and stderr is \"%.2000s\"", text);
    }
}

/* ---- traces ---- */

static void mix(struct tally *tally, uint64_t value)
{
    tally->digest = (tally->digest ^ value) * 0x100000001b3u;
    tally->digest ^= tally->digest >> 29;
}

static void mix_text(struct tally *tally, const char *text)
{
    for (; *text; text++) {
        mix(tally, (unsigned char)*text);
    }
}

static const char *name_of(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = sw_trace_get_name(trace, id);
    return name ? name->text : "";
}

static void tally_lanes(struct tally *tally, const sw_trace *trace)
{
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        tally->steps_counted += lane->steps;
        tally->open += lane->open_count;
        tally->open_lanes += lane->open_count != 0;
        for (size_t j = 0; j < lane->node_count; j++) {
            const sw_trace_node *node = &lane->nodes[j];
            tally->calls += node->kind == 0 ? node->calls : 0;
            mix_text(tally, name_of(trace, node->section));
            mix(tally, node->calls);
            mix(tally, node->inclusive_ns);
            mix(tally, node->open);
        }
    }
}

static void tally_records(struct tally *tally, sw_trace *trace)
{
    const sw_trace_info *facts = sw_trace_get_info(trace);
    const sw_cursor_filter filter = {.steps = true};
    sw_cursor *cursor = NULL;
    sw_error_info info = {0};
    sw_event event;
    int result = sw_cursor_open(&cursor, &trace, 1, &filter, &info);
    while (!result && (result = sw_cursor_next(cursor, &event)) == 0) {
        const sw_record *record = event.record;
        mix(tally, record->kind | (uint64_t)record->flags << 8);
        mix(tally, event.begin_ns);
        mix(tally, event.end_ns);
        mix(tally, event.thread);
        if (record->kind == SW_RECORD_STEP) {
            tally->steps++;
            continue;
        }
        tally->counted++;
        if (record->kind == SW_RECORD_SPAN) {
            tally->spans++;
            tally->cut += (record->flags & SW_RECORD_CUT) != 0;
            tally->nameless += name_of(trace, record->id)[0] == 0;
            tally->backward +=
                event.end_ns < event.begin_ns || event.begin_ns < facts->start_ns;
        }
    }
    if (result != SW_EEND) {
        crash_fail(__FILE__, __LINE__, "the cursor ended with %d: %s", result,
                   info.message);
    }
    sw_cursor_free(cursor);
}

static void tally_trace(struct tally *tally, sw_trace *trace)
{
    const sw_trace_info *info = sw_trace_get_info(trace);
    /* First the records: a cursor corrects the counts of a damaged file. */
    tally_records(tally, trace);
    tally->files++;
    tally->closed += info->end == SW_TRACE_CLOSED;
    tally->killed += info->end == SW_TRACE_KILLED;
    tally->running += info->end == SW_TRACE_RUNNING;
    tally->damaged += info->damaged;
    tally->hot_used += info->hot_used;
    tally->hot_missing += info->hot_missing;
    tally->losers += info->dropped != 0;
    tally->present += info->present;
    tally->dropped += info->dropped;
    tally->overwritten += info->overwritten;
    tally->reentrant += info->reentrant;
    tally->unmatched += info->unmatched;
    tally->too_deep += info->too_deep;
    tally->bus_errors += info->bus_errors;
    tally->steps_dropped += info->steps_dropped;
    tally->first_error = tally->first_error ? tally->first_error : info->first_error;
    tally->threads += sw_trace_thread_count(trace);
    for (size_t i = 0; i < sw_trace_thread_count(trace); i++) {
        tally->incarnations += sw_trace_get_thread(trace, i)->incarnations;
    }
    mix(tally, info->pid);
    mix(tally, info->present);
    mix(tally, info->dropped);
    mix(tally, info->overwritten);
    uint64_t records = tally->digest;
    tally->digest = tally->digest_lanes;
    tally_lanes(tally, trace);
    tally->digest_lanes = tally->digest;
    mix(tally, records);
    if (getenv("STEPWATCH_TEST_NOTES")) {
        for (size_t i = 0; sw_trace_note(trace, i); i++) {
            fprintf(stderr, "  note: %s\n", sw_trace_note(trace, i));
        }
    }
}

static const char *default_path(const char *path, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s/run", crash_dir);
    return path ? path : buffer;
}

void tally_read(struct tally *tally, const char *path)
{
    char buffer[300];
    sw_run *run = NULL;
    sw_error_info info = {0};
    memset(tally, 0, sizeof(*tally));
    tally->result = sw_run_open(&run, default_path(path, buffer, sizeof(buffer)), &info);
    if (tally->result) {
        return;
    }
    for (size_t i = 0; i < sw_run_count(run); i++) {
        tally_trace(tally, sw_run_trace(run, i));
    }
    while (sw_run_note(run, tally->unreadable)) {
        tally->unreadable++;
    }
    sw_run_free(run);
}

void crash_check_whole(const char *file, int line, const struct tally *tally,
                       uint64_t attempted)
{
    crash_equal(file, line, "result of sw_run_open", tally->result, 0);
    crash_equal(file, line, "unreadable files", (long long)tally->unreadable, 0);
    crash_equal(file, line, "damaged files", (long long)tally->damaged, 0);
    crash_equal(file, line, "closed files", (long long)tally->closed,
                (long long)tally->files);
    crash_equal(file, line, "records counted and present", (long long)tally->counted,
                (long long)tally->present);
    crash_equal(file, line, "attempted", (long long)ATTEMPTED(tally),
                (long long)attempted);
    crash_equal(file, line, "spans without a name", (long long)tally->nameless, 0);
    crash_equal(file, line, "spans with impossible times", (long long)tally->backward, 0);
}

uint64_t tally_calls_of(const char *path, const char *section)
{
    char buffer[300];
    sw_run *run = NULL;
    sw_error_info info = {0};
    uint64_t calls = 0;
    if (sw_run_open(&run, default_path(path, buffer, sizeof(buffer)), &info)) {
        return 0;
    }
    for (size_t i = 0; i < sw_run_count(run); i++) {
        const sw_trace *trace = sw_run_trace(run, i);
        for (size_t j = 0; j < sw_trace_lane_count(trace); j++) {
            const sw_trace_lane *lane = sw_trace_get_lane(trace, j);
            for (size_t k = 0; k < lane->node_count; k++) {
                if (strcmp(name_of(trace, lane->nodes[k].section), section) == 0) {
                    calls += lane->nodes[k].calls;
                }
            }
        }
    }
    sw_run_free(run);
    return calls;
}

size_t list_files(const char *folder, const char *suffix, char ***paths)
{
    DIR *all = opendir(folder);
    size_t count = 0;
    *paths = NULL;
    for (struct dirent *one; all && (one = readdir(all));) {
        size_t length = strlen(one->d_name), tail = strlen(suffix);
        if (length < tail || strcmp(one->d_name + length - tail, suffix) != 0) {
            continue;
        }
        char **more = realloc(*paths, (count + 1) * sizeof(*more));
        if (!more || asprintf(&more[count], "%s/%s", folder, one->d_name) < 0) {
            exit(99);
        }
        *paths = more;
        count++;
    }
    if (all) {
        closedir(all);
    }
    return count;
}

void free_files(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(paths[i]);
    }
    free(paths);
}

unsigned fold_all(const char *path)
{
    char buffer[300];
    char **paths;
    unsigned folded = 0;
    size_t count =
        list_files(default_path(path, buffer, sizeof(buffer)), ".stepwatch", &paths);
    for (size_t i = 0; i < count; i++) {
        sw_fold_result result;
        sw_error_info info = {0};
        int error = sw_store_fold(paths[i], &result, &info);
        if (error) {
            crash_fail(__FILE__, __LINE__, "folding %s: %d, %s", paths[i], error,
                       info.message);
        }
        folded += result.folded;
    }
    free_files(paths, count);
    return folded;
}

size_t hot_files(void)
{
    char folder[300];
    char **paths;
    snprintf(folder, sizeof(folder), "%s/stepwatch-%u", crash_hot, (unsigned)geteuid());
    size_t count = list_files(folder, ".hot", &paths);
    free_files(paths, count);
    return count;
}

char *report_json(const char *path)
{
    char buffer[300];
    struct run run = {0};
    const char *argv[] = {crash_command, "report", "--json",
                          default_path(path, buffer, sizeof(buffer)), NULL};
    run_start_argv(&run, argv);
    run_finish(&run);
    if (run.status != 0 || run.out_text[0] != '{') {
        crash_fail(__FILE__, __LINE__, "stepwatch report: status %04x, stderr \"%.300s\"",
                   (unsigned)run.status, run.err_text);
    }
    char *text = run.out_text;
    run.out_text = NULL;
    run_free(&run);
    return text;
}

/* ---- mounts ---- */

void need_mounts(void)
{
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        crash_skip("needs root: a mount namespace of its own");
    }
}

void mount_tmpfs(const char *name, unsigned kib, char *path, size_t size)
{
    char options[64];
    snprintf(path, size, "%s/%s", crash_dir, name);
    snprintf(options, sizeof(options), "size=%uk,mode=0700", kib);
    if (mkdir(path, 0700) || mount("none", path, "tmpfs", 0, options)) {
        crash_skip("a tmpfs cannot be mounted here");
    }
}

void fill_up(const char *folder)
{
    static const char nothing[4096];
    char path[300];
    snprintf(path, sizeof(path), "%s/filling-%d", folder, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (size_t part = sizeof(nothing); fd >= 0 && part;) {
        if (write(fd, nothing, part) <= 0) {
            part /= 2;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}
