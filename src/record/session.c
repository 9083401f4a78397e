/* Sessions: starting and ending a recording. */
#include "base/memory.h"
#include "base/os.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/watchers.h"
#include <errno.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepwatch/version.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SW__MIB ((uint64_t)1 << 20)
#define SW__HOT_FIRST (256u * 1024u) /* the helper makes more, right after the start */

struct sw__session sw__session = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .home = {.fd = -1}, .hot = {.fd = -1}};

void sw__say(const char *format, ...)
{
    char line[700];
    if (sw__session.settings.quiet) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(line, sizeof(line), "stepwatch: ");
    int more =
        vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
    va_end(arguments);
    size_t total = (size_t)length + (more > 0 ? (size_t)more : 0);
    total = total > sizeof(line) - 2 ? sizeof(line) - 2 : total;
    line[total++] = '\n';
    /* One write, so that the line stays whole beside the program's own. */
    (void)sw__os_write_all(STDERR_FILENO, line, total);
}

void sw__loss_note(const char *format, ...)
{
    if (sw__session.loss[0]) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sw__session.loss, sizeof(sw__session.loss), format, arguments);
    va_end(arguments);
}

void sw__total_add(enum sw__fmt_total which, uint64_t amount)
{
    uint32_t state = atomic_load_explicit(&sw__session.state, memory_order_acquire);
    if (state == SW__SESSION_ON || state == SW__SESSION_ENDING) {
        atomic_fetch_add_explicit(&sw__session.super->total[which], amount,
                                  memory_order_relaxed);
    }
}

bool sw_is_recording(void)
{
    return atomic_load(&sw__session.state) == SW__SESSION_ON;
}

static bool sw__env_truthy(const char *value)
{
    return value && (strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0 ||
                     strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0);
}

bool sw__session_lazy(void)
{
    /* 0 not asked yet, 1 no, 2 yes. */
    static _Atomic int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!known) {
        known = sw__env_truthy(getenv("STEPWATCH_ENABLED")) ? 2 : 1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 2;
}

/* Room for the hot file by policy. A ring and the memory of policy drop live in it; streams and policy auto need
 * only what is on its way. A quarter of the cap is left for the process's own memory. */
static uint64_t sw__hot_limit(const struct sw__settings *settings)
{
    uint64_t cap = settings->max_bytes ? settings->max_bytes : 1024 * SW__MIB;
    uint64_t limit = cap / 4 * 3;
    if (settings->policy == SW_POLICY_STREAM) {
        limit = cap / 2 > 256 * SW__MIB ? 256 * SW__MIB : cap / 2;
    } else if (settings->policy == SW_POLICY_AUTO) {
        limit = cap / 2 > 64 * SW__MIB ? 64 * SW__MIB : cap / 2;
    }
    return limit < SW__HOT_FIRST ? SW__HOT_FIRST : limit / SW__FMT_PAGE * SW__FMT_PAGE;
}

/* `runs/profiling/<UTC time>-<name>`, numbered when it is taken. */
static void sw__run_dir_default(char *out, size_t size, const char *folder,
                                const char *name)
{
    struct timespec now;
    struct tm utc;
    char stamp[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
    for (unsigned number = 1; number < 1000; number++) {
        struct stat facts;
        if (number == 1) {
            snprintf(out, size, "%s/%s-%s", folder, stamp, name);
        } else {
            snprintf(out, size, "%s/%s-%s-%u", folder, stamp, name, number);
        }
        if (stat(out, &facts)) {
            return;
        }
    }
}

/* The run directory as an absolute path: the program may change its own. */
static int sw__run_dir_choose(sw_error_info *info)
{
    struct sw__session *session = &sw__session;
    char chosen[1024];
    if (session->run_dir[0]) {
        return 0; /* A child joins its parent's. */
    }
    if (session->settings.out[0]) {
        snprintf(chosen, sizeof(chosen), "%s", session->settings.out);
    } else {
        sw__run_dir_default(chosen, sizeof(chosen), session->settings.runs_dir,
                            session->settings.name);
    }
    size_t length = 0;
    if (chosen[0] != '/') {
        if (!getcwd(session->run_dir, sizeof(session->run_dir))) {
            session->run_dir[0] = 0;
            return sw_error_set(info, SW_EOPEN, "the current folder cannot be named: %s",
                                strerror(errno));
        }
        length = strlen(session->run_dir);
    }
    int more = snprintf(session->run_dir + length, sizeof(session->run_dir) - length,
                        "%s%s", length ? "/" : "", chosen);
    if (more < 0 || (size_t)more + length >= sizeof(session->run_dir)) {
        session->run_dir[0] = 0;
        return sw_error_set(info, SW_EINVAL, "the run directory's path is too long");
    }
    return 0;
}

static void sw__super_fill(struct sw__session *session)
{
    struct sw__fmt_super *super = session->super;
    const struct sw__settings *settings = &session->settings;
    memcpy(super->magic, SW__FMT_MAGIC, sizeof(super->magic));
    super->version = SW_FORMAT_VERSION;
    super->endian = SW__FMT_ENDIAN;
    super->super_size = sizeof(*super);
    super->role = SW__ROLE_HOT;
    super->clock_kind = (uint32_t)sw__clock_kind;
    super->pid = (uint32_t)getpid();
    super->ppid = (uint32_t)getppid();
    super->process_start = sw__os_process_start(getpid());
    super->policy = (uint32_t)settings->policy;
    super->events = settings->events;
    super->max_bytes = settings->max_bytes;
    super->keep_first = settings->keep_first;
    super->keep_last = settings->keep_last;
    super->keep_worst = settings->keep_worst;
    sw_clock_snap(&super->start_snapshot);
    super->latest_snapshot[0] = super->start_snapshot;
    super->latest_snapshot[1] = super->start_snapshot;
    snprintf(super->run_id, sizeof(super->run_id), "%s", settings->run_id);
    snprintf(super->name, sizeof(super->name), "%s", settings->name);
    snprintf(super->hot_path, sizeof(super->hot_path), "%s", session->hot.path);
    snprintf(super->home_path, sizeof(super->home_path), "%s", session->home.path);
}

/* Takes back everything a failed start has made. */
static void sw__session_undo(struct sw__session *session)
{
    if (session->pool.chunks) {
        sw__pool_free(&session->pool);
    }
    sw__mirror_free(&session->mirror);
    sw__hot_close(&session->hot, true, false);
    if (session->home.fd >= 0) {
        unlink(session->home.path);
        sw__home_close(&session->home);
        rmdir(session->run_dir); /* Only an empty one goes. */
    }
}

/* Makes files and memory. session.lock held. */
static int sw__session_build(struct sw__session *session, sw_error_info *info)
{
    const struct sw__settings *settings = &session->settings;
    char stem[192];
    snprintf(stem, sizeof(stem), "%s-%ld", settings->name, (long)getpid());
    int result = sw__run_dir_choose(info);
    if (result) {
        return result;
    }
    /* Three eighths stay for step records, names and statistics, which are always kept. */
    uint64_t cap = settings->max_bytes / 8 * 5;
    if (session->brief) {
        memset(&session->home, 0, sizeof(session->home));
        session->home.fd = -1; /* There is none. */
    } else {
        result = sw__home_create(&session->home, session->run_dir, stem, cap, info);
    }
    if (result) {
        return result;
    }
    const struct sw__hot_place place = {.asked = settings->hot_dir,
                                        .run_dir = session->run_dir};
    const uint64_t limit = sw__hot_limit(settings);
    result = session->brief
                 ? sw__hot_create_nameless(&session->hot, limit, SW__HOT_FIRST, info)
                 : sw__hot_create(&session->hot, &place, limit, SW__HOT_FIRST, info);
    if (result) {
        return result;
    }
    session->super = sw__hot_super(&session->hot);
    sw__os_random(session->super->file_id);
    memcpy(&session->hot.file_id, session->super->file_id, sizeof(session->hot.file_id));
    const struct sw__pool_config config = {
        .policy = settings->policy == SW_POLICY_STREAM ? SW__POOL_STREAM
                  : settings->policy == SW_POLICY_RING ? SW__POOL_RING
                  : settings->policy == SW_POLICY_DROP ? SW__POOL_DROP
                                                       : SW__POOL_AUTO,
        .max_bytes = settings->max_bytes,
        .keep_first = settings->keep_first,
        .keep_last = settings->keep_last,
        .keep_worst = settings->keep_worst,
    };
    result = sw__mirror_init(&session->mirror, &session->hot, &session->home);
    if (!result) {
        result = sw__pool_init(&session->pool, &session->hot, &session->home,
                               &session->mirror, &config);
    }
    if (result) {
        return sw_error_set(info, result, "there is no memory for recording");
    }
    sw__super_fill(session);
    session->first_super = *session->super;
    return 0;
}

static void sw__session_exit(void)
{
    sw_shutdown();
}

/* Starts with the settings that are there. session.lock held. */
static int sw__session_start(sw_error_info *info)
{
    struct sw__session *session = &sw__session;
    static bool registered;
    uint32_t generation = atomic_load(&session->generation) + 1;
    generation = generation ? generation : 1;
    atomic_store(&session->generation, generation);
    session->pid = getpid();
    session->threads = NULL;
    session->watchers = NULL;
    session->thread_count = 0;
    session->threads_dead = 0;
    session->threads_block = NULL;
    session->defs_block = NULL;
    session->rows_block = NULL;
    memset(session->rows_done, 0, sizeof(session->rows_done));
    session->defs_done = 0;
    session->domains_done = 0;
    session->loss[0] = 0;
    session->retry_at = 0;
    sw__clock_init();
    if (!sw_domain_get("")) {
        return sw_error_set(info, SW_ENOMEM, "there is no memory for names");
    }
    sw__names_restart_steps();
    int result = sw__session_build(session, info);
    if (result) {
        sw__session_undo(session);
        return result;
    }
    sw__facts_collect(&session->settings, session->brief, sw__fact_put, NULL);
    sw__fact_put(NULL, "hot_memory", session->hot.where);
    sw__given_facts_put();
    if (!session->brief) {
        sw__memory_begin();
    }
    (void)sw__names_define();
    if (!session->brief) {
        (void)sw__mirror_copy(&session->mirror, false);
        result = sw__home_put_super(&session->home, session->super, SW__STATE_OPEN,
                                    session->hot.path);
    }
    if (result) {
        result = sw_error_set(info, result, "the trace %s cannot be written: %s",
                              session->home.path, strerror(session->home.error));
        sw__session_undo(session);
        return result;
    }
    if (!registered) {
        registered = true;
        sw__fork_register();
        atexit(sw__session_exit);
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    }
    atomic_store(&session->state, SW__SESSION_ON);
    sw__calibrate(session->super, session->brief);
    sw_clock_snapshot now;
    sw_clock_snap(&now);
    uint64_t elapsed = now.mono_ns - session->super->start_snapshot.mono_ns;
    session->ticks_per_ms =
        elapsed ? (uint64_t)((double)(now.ticks - session->super->start_snapshot.ticks) /
                             (double)elapsed * 1e6)
                : 1000000;
    atomic_store(&sw__events_on,
                 session->settings.events &&
                     session->settings.schedule.form == SW_SCHEDULE_ALWAYS);
    /* Names that came while this was going on, too. */
    (void)sw__names_define();
    sw__names_open_gates(true);
    if (!session->brief) {
        (void)sw__helper_start();
    }
    return 0;
}

static void sw__warn(void *arg, const char *sentence)
{
    (void)arg;
    sw__say("%s", sentence);
}

static int sw__init(const sw_config *config, size_t size, bool brief, sw_error_info *info)
{
    struct sw__session *session = &sw__session;
    static struct sw__settings settings; /* under the lock; large for a small stack */
    int result = 0;
    if (sw__wiped()) {
        sw__forked_child();
    }
    sw__lock(&session->lock);
    const bool child = atomic_load(&session->state) == SW__SESSION_FORKED;
    if (atomic_load(&session->state) == SW__SESSION_ON) {
        result = sw_error_set(info, SW_ESTATE, "recording has started already");
        goto out;
    }
    result = sw__settings_load(&settings, config, size, sw__warn, NULL, info);
    if (!result && !settings.enabled) {
        result = sw_error_set(info, SW_EDISABLED, "recording is switched off");
    }
    if (!result) {
        session->settings = settings;
        session->brief = brief;
        if (brief) { /* What is full is not written anywhere. */
            session->settings.policy = SW_POLICY_DROP;
        }
        session->run_dir[0] = 0;
        result = sw__session_start(info);
    }
    if (result) {
        atomic_store(&session->state, SW__SESSION_OFF);
        sw__names_open_gates(false);
    }
out:
    sw__unlock(&session->lock);
    if (result == 0) {
        sw__watchers_begin(&session->settings, child);
    }
    return result;
}

int sw_init_info(const sw_config *config, size_t size, sw_error_info *info)
{
    return sw__init(config, size, false, info);
}

int sw_init_brief(const sw_config *config, size_t size, sw_error_info *info)
{
    return sw__init(config, size, true, info);
}

int sw_brief_fd(void)
{
    struct sw__session *session = &sw__session;
    int fd = -1;
    sw__lock(&session->lock);
    if (sw_is_recording() && session->brief &&
        sw__os_is_file(session->hot.fd, session->hot.device, session->hot.inode)) {
        fd = sw__os_duplicate(session->hot.fd);
    }
    sw__unlock(&session->lock);
    return fd;
}

int sw_init_sized(const sw_config *config, size_t size)
{
    sw_error_info info = {0};
    int result = sw_init_info(config, size, &info);
    if (result && result != SW_EDISABLED && result != SW_ESTATE) {
        sw__say("not recording: %s", info.message);
    }
    return result;
}

/* Whether records go somewhere. Starts the session of a forked child, and that of a program under
 * `stepwatch run` that does not start it itself. */
bool sw__session_ready(void)
{
    struct sw__session *session = &sw__session;
    uint32_t state = atomic_load_explicit(&session->state, memory_order_acquire);
    if (SW__LIKELY(state == SW__SESSION_ON)) {
        return true;
    }
    if (state == SW__SESSION_OFF || state == SW__SESSION_ENDING ||
        (state == SW__SESSION_NEVER && !sw__session_lazy())) {
        return false;
    }
    if (state == SW__SESSION_NEVER) {
        return sw_init_sized(NULL, 0) == 0;
    }
    sw_error_info info = {0};
    int result = SW_ESTATE;
    sw__lock(&session->lock);
    if (atomic_load(&session->state) == SW__SESSION_FORKED) {
        result = sw__session_start(&info);
        if (result) {
            atomic_store(&session->state, SW__SESSION_OFF);
            sw__names_open_gates(false);
            sw__say("process %ld is not recorded: %s", (long)getpid(), info.message);
        }
    }
    sw__unlock(&session->lock);
    if (result == 0) {
        sw__watchers_begin(&session->settings, true);
    }
    return atomic_load(&session->state) == SW__SESSION_ON;
}

/* Somebody cut the hot file, and its first page came back empty: what identifies the trace is put back. */
void sw__session_repair_super(void)
{
    struct sw__session *session = &sw__session;
    if (memcmp(session->super->magic, SW__FMT_MAGIC, sizeof(session->super->magic)) !=
        0) {
        *session->super = session->first_super;
        session->hot.cut = true;
    }
    atomic_store(&session->super->total[SW__TOTAL_BUS_ERRORS],
                 sw__sigbus_count(session->hot.base));
}

/* One line for the user when something is missing from the trace. */
static void sw__session_say_losses(const struct sw__session *session, uint64_t dropped)
{
    const struct sw__fmt_super *super = session->super;
    uint64_t pages = sw__sigbus_count(session->hot.base);
    uint64_t steps = atomic_load(&super->total[SW__TOTAL_STEPS_DROPPED]);
    if (session->home.gone) {
        sw__say("the trace %s was removed or its descriptor closed while recording; it "
                "is lost",
                session->home.path);
    } else if (session->home.error) {
        sw__say("%s: %s; %llu events and %llu records of steps and watchers were lost",
                session->home.path, strerror(session->home.error),
                (unsigned long long)dropped, (unsigned long long)steps);
    } else if (session->home.cuts) {
        sw__say("%s was truncated by another process; %llu events were lost",
                session->home.path, (unsigned long long)dropped);
    } else if (pages || session->hot.cut) {
        sw__say("the recording memory was truncated by another process; what it held is "
                "lost");
    } else if (dropped) {
        sw__say(
            "%llu events did not fit%s%s and were dropped; max_mb or policy change that",
            (unsigned long long)dropped, session->loss[0] ? ", " : "", session->loss);
    } else if (session->loss[0]) {
        sw__say("%s", session->loss);
    }
}

static uint64_t sw__session_dropped(const struct sw__session *session)
{
    uint64_t dropped = atomic_load(&session->super->total[SW__TOTAL_DROPPED]);
    for (const struct sw__thread *at = session->threads; at; at = at->next) {
        dropped += atomic_load_explicit(&at->slot->dropped, memory_order_relaxed);
    }
    return dropped;
}

/* Writes everything out and closes. session.lock held, gates closed, helper stopped. */
static void sw__session_close(struct sw__session *session)
{
    uint32_t most = session->thread_count * 2 + 2;
    uint32_t *open = sw__alloc_zero(most, sizeof(*open));
    sw__memory_end();
    session->quiet_end = sw__threads_settle();
    sw__threads_end();
    size_t count = open ? sw__threads_open_chunks(open, most) : 0;
    /* Names and statistics first: on a full disk they are worth more than events. */
    (void)sw__mirror_copy(&session->mirror, false);
    sw__pool_finish(&session->pool, open, count);
    sw__free(open);
    sw__hot_check(&session->hot);
    sw__session_repair_super();
    sw_clock_snap(&session->super->end_snapshot);
    session->super->exit_reason = 1;
    session->super->revision++;
    (void)sw__home_check(&session->home);
    (void)sw__mirror_copy(&session->mirror, false);
    uint64_t dropped, overwritten, lost = sw__session_dropped(session);
    sw__mirror_unsaved(&session->mirror, &dropped, &overwritten);
    atomic_store(&session->super->total[SW__TOTAL_WRITE_ERRORS], session->home.errors);
    atomic_fetch_add(&session->super->total[SW__TOTAL_DROPPED],
                     session->home.cut_records);
    atomic_store(&session->super->error, (uint32_t)session->home.error);
    /* In the home file only: the hot one, should it stay, has the threads' own counts. */
    struct sw__fmt_super last = *session->super;
    atomic_fetch_add(&last.total[SW__TOTAL_DROPPED], dropped);
    atomic_fetch_add(&last.total[SW__TOTAL_OVERWRITTEN], overwritten);
    int result = sw__home_put_super(&session->home, &last, SW__STATE_CLOSED, "");
    sw__session_say_losses(session, lost + session->home.cut_records);
    sw__threads_release();
    /* A file that could not be closed can still be completed from memory once there is room. */
    bool keep = result != 0 && !session->home.gone;
    sw__home_close(&session->home);
    sw__hot_close(&session->hot, session->quiet_end, keep);
    if (session->quiet_end) {
        sw__pool_free(&session->pool);
        sw__mirror_free(&session->mirror);
    }
    session->super = NULL;
}

/* The same where all of it lies in memory: whoever has a descriptor of that reads it there. */
static void sw__session_close_brief(struct sw__session *session)
{
    session->quiet_end = sw__threads_settle();
    sw__threads_end();
    sw__hot_check(&session->hot);
    sw__session_repair_super();
    sw_clock_snap(&session->super->end_snapshot);
    session->super->exit_reason = 1;
    session->super->revision++;
    atomic_store(&session->super->state, (uint32_t)SW__STATE_CLOSED);
    sw__threads_release();
    sw__hot_trim(&session->hot);
    sw__hot_close(&session->hot, session->quiet_end, false);
    if (session->quiet_end) {
        sw__pool_free(&session->pool);
        sw__mirror_free(&session->mirror);
    }
    session->super = NULL;
}

void sw_shutdown(void)
{
    struct sw__session *session = &sw__session;
    if (sw__wiped()) {
        sw__forked_child();
    }
    sw__watchers_end();
    sw__lock(&session->lock);
    if (atomic_load(&session->state) == SW__SESSION_ON) {
        sw__helper_stop(false);
        /* The state first: a section made from now on finds its gate closed too. */
        atomic_store(&session->state, SW__SESSION_ENDING);
        sw__names_open_gates(false);
        if (session->brief) {
            sw__session_close_brief(session);
        } else {
            sw__session_close(session);
        }
        atomic_store(&sw__events_on, false);
        atomic_store(&session->state, SW__SESSION_OFF);
    } else if (atomic_load(&session->state) == SW__SESSION_FORKED) {
        /* A child that recorded nothing has no file. */
        atomic_store(&session->state, SW__SESSION_OFF);
        sw__names_open_gates(false);
    }
    sw__unlock(&session->lock);
}

static size_t sw__copy_text(char *out, size_t size, const char *text)
{
    int length = snprintf(out, size, "%s", text);
    return length < 0 ? 0 : (size_t)length;
}

size_t sw_trace_path(char *out, size_t size)
{
    sw__lock(&sw__session.lock);
    size_t length =
        sw__copy_text(out, size, sw_is_recording() ? sw__session.home.path : "");
    sw__unlock(&sw__session.lock);
    return length;
}

size_t sw_option_value(const char *name, char *out, size_t size)
{
    int index = name ? sw__option_find(name, strlen(name)) : -1;
    size_t length = 0;
    if (size > 0) {
        *out = '\0';
    }
    sw__lock(&sw__session.lock);
    if (index >= 0 && sw_is_recording()) {
        length = sw__option_show(&sw__session.settings, index, out, size);
    }
    sw__unlock(&sw__session.lock);
    return length;
}

size_t sw_run_dir(char *out, size_t size)
{
    sw__lock(&sw__session.lock);
    size_t length =
        sw__copy_text(out, size, sw_is_recording() ? sw__session.run_dir : "");
    sw__unlock(&sw__session.lock);
    return length;
}
