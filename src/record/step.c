/* Steps: their records, phases and schedules. */
#include "base/os.h"
#include "record/recorder.h"
#include <string.h>
#include <sys/stat.h>

/* Phases of the sections that are open when a step begins count from its first tick. */
static void sw__step_phases(struct sw__lane *lane)
{
    uint8_t phase = SW_PHASE_OTHER;
    for (struct sw__fmt_frame *at = lane->bottom; at < lane->top; at++) {
        const struct sw_section *section =
            sw__section_by_id(sw__node_at(lane, at->node)->section);
        uint8_t flags = (uint8_t)(at->flags & ~SW__FRAME_PHASED);
        if (section && section->phase < SW_PHASE_COUNT) {
            __atomic_store_n(&at->phase_before, phase, __ATOMIC_RELAXED);
            flags |= SW__FRAME_PHASED;
            phase = sw__phase_within(phase, section->phase);
        }
        __atomic_store_n(&at->flags, flags, __ATOMIC_RELAXED);
    }
    lane->phase = phase;
}

/* What the kernel says that the thread used over the last `steps` steps; 0: not read. */
struct sw__step_used {
    uint32_t steps;
    uint32_t voluntary, involuntary, minor_faults, major_faults;
    uint64_t cpu_ns, run_delay_ns;
    struct sw__os_memory memory;
    bool has_io;
    sw_step_io io; /* of the process */
};

/* Usage costs five system calls, which take tens of microseconds where the caches are the program's. So it is read at most
 * once in ten milliseconds; of shorter steps, of which a record speaks for several anyway, once in a thousand times of what
 * the last reading took, up to fifty; of those that are watched in brief five times as seldom. */
enum { SW__USAGE_MS = 10, SW__USAGE_MOST_MS = 50, SW__USAGE_SHARE = 1000 };
enum { SW__USAGE_BRIEF = 5 };

/* Ticks between two readings, at the end of a step that took `step`, where the last reading took `took`. */
static uint64_t sw__usage_pause(uint64_t step, uint64_t took, bool brief)
{
    const uint64_t ms = sw__session.ticks_per_ms;
    const uint64_t least = SW__USAGE_MS * ms, most = SW__USAGE_MOST_MS * ms;
    const uint64_t fair = took < most ? took * SW__USAGE_SHARE : most;
    const uint64_t pause = fair < least ? least : fair > most ? most : fair;
    return step >= least ? least : brief ? pause * SW__USAGE_BRIEF : pause;
}

/* Memory alone is one call of about a microsecond, and some more where the caches are the program's. A program of short steps that ends
 * soon would have too few readings to tell growth from chance, so it is read in between, too: once in a 64th part of the time since the
 * first reading, which is seldom soon, and at most once in a millisecond; of steps that are watched in brief once in ten. */
enum { SW__MEMORY_MS = 1, SW__MEMORY_BRIEF_MS = 10, SW__MEMORY_PART = 64 };

/* Tick from which on it is read. */
static uint64_t sw__memory_due(const struct sw__thread *thread, uint64_t now, bool brief)
{
    const uint64_t ms = sw__session.ticks_per_ms;
    const uint64_t least = (brief ? SW__MEMORY_BRIEF_MS : SW__MEMORY_MS) * ms;
    const uint64_t part = (now - thread->memory_first) / SW__MEMORY_PART;
    return thread->memory_ticks + (part > least ? part : least);
}

/* Tells whether it was read. */
static bool sw__step_memory(struct sw__thread *thread, uint64_t end, bool brief,
                            struct sw__os_memory *memory)
{
    if (end < sw__memory_due(thread, end, brief)) {
        return false;
    }
    sw__os_process_memory(memory, sw__kept_open(&thread->statm, "/proc/self/statm"));
    thread->memory_ticks = end;
    return true;
}

int sw__kept_open(struct sw__kept_file *file, const char *path)
{
    if (file->fd == -1) {
        struct stat facts;
        const int fd = sw__os_open_read(path);
        if (fd >= 0 && fstat(fd, &facts) == 0) {
            file->device = facts.st_dev;
            file->inode = facts.st_ino;
        }
        file->fd = fd < 0 ? -2 : fd;
    }
    return file->fd;
}

uint64_t sw__usage_due(const struct sw__thread *thread, uint64_t step, uint64_t now)
{
    if (!sw__session.settings.step_usage) {
        return UINT64_MAX;
    }
    const uint64_t memory = sw__memory_due(thread, now, true);
    const uint64_t usage =
        thread->usage_ticks + sw__usage_pause(step, thread->usage_took, true);
    return memory < usage ? memory : usage;
}

/* Tells whether it was read. */
static bool sw__step_usage(struct sw__thread *thread, uint64_t start, uint64_t end,
                           bool brief, struct sw__step_used *used)
{
    if (!sw__session.settings.step_usage) {
        return false;
    }
    thread->usage_steps++;
    if (thread->usage_ticks &&
        end - thread->usage_ticks <
            sw__usage_pause(end - start, thread->usage_took, brief)) {
        return sw__step_memory(thread, end, brief, &used->memory);
    }
    const uint64_t began = sw_now();
    struct sw__os_usage now;
    sw__os_thread_usage(&now,
                        sw__kept_open(&thread->schedstat, "/proc/thread-self/schedstat"));
    sw__os_process_memory(&used->memory,
                          sw__kept_open(&thread->statm, "/proc/self/statm"));
    const uint64_t fresh[6] = {now.cpu_ns,      now.run_delay_ns, now.voluntary,
                               now.involuntary, now.minor_faults, now.major_faults};
    thread->memory_first = thread->usage_ticks ? thread->memory_first : end;
    thread->memory_ticks = end;
    if (thread->usage_ticks) {
        used->steps = thread->usage_steps;
        used->cpu_ns = fresh[0] - thread->usage[0];
        if (fresh[1] != UINT64_MAX && thread->usage[1] != UINT64_MAX) {
            used->run_delay_ns = fresh[1] - thread->usage[1];
        }
        used->voluntary = (uint32_t)(fresh[2] - thread->usage[2]);
        used->involuntary = (uint32_t)(fresh[3] - thread->usage[3]);
        used->minor_faults = (uint32_t)(fresh[4] - thread->usage[4]);
        used->major_faults = (uint32_t)(fresh[5] - thread->usage[5]);
    }
    struct sw__os_io io;
    const sw_step_io *before = &thread->io_before;
    sw__os_process_io(&io, sw__kept_open(&thread->io, "/proc/self/io"));
    if (thread->usage_ticks && io.read_bytes != UINT64_MAX &&
        before->read_bytes != UINT64_MAX) {
        used->has_io = true;
        used->io = (sw_step_io){
            io.read_bytes - before->read_bytes, io.written_bytes - before->written_bytes,
            io.read_calls - before->read_calls, io.write_calls - before->write_calls};
    }
    thread->io_before =
        (sw_step_io){io.read_bytes, io.written_bytes, io.read_calls, io.write_calls};
    memcpy(thread->usage, fresh, sizeof(fresh));
    thread->usage_ticks = end;
    thread->usage_took = sw_now() - began;
    thread->usage_steps = 0;
    return true;
}

/* Adds one to what only the calling thread changes; others read it. */
static void sw__count_one(_Atomic uint64_t *count)
{
    sw__add((uint64_t *)(void *)count, 1);
}

/* The record in the room is whole. */
static void sw__step_publish(struct sw__thread *thread, uint32_t bytes)
{
    sw__kept_publish(thread, bytes);
    sw__count_one(&thread->slot->steps);
}

/* Statistics of all steps, exact also when step records have to give way. */
static void sw__step_count(struct sw__lane *lane, uint64_t duration, unsigned flags)
{
    struct sw__fmt_lane *file = lane->file;
    sw__count_one(&file->steps);
    if (flags & SW_STEP_INCOMPLETE) {
        sw__count_one(&file->steps_incomplete);
        return;
    }
    sw__add(&file->step_ticks, duration);
    if (duration < file->step_min) {
        __atomic_store_n(&file->step_min, duration, __ATOMIC_RELAXED);
    }
    if (duration > file->step_max) {
        __atomic_store_n(&file->step_max, duration, __ATOMIC_RELAXED);
    }
    for (uint32_t left = lane->phases; left; left &= left - 1) {
        const int phase = __builtin_ctz(left);
        sw__add(&file->phase_ticks[phase], lane->phase_ticks[phase]);
    }
    sw__hist_add(lane, file->step_hist, duration);
}

/* The record is made where it stays, for copying one that was just written would wait for its parts, and last, for a signal handler may end a
 * step in another domain. */
bool sw__step_end_at(struct sw__lane *lane, unsigned flags, uint64_t now, bool past)
{
    struct sw__thread *thread = lane->thread;
    const uint64_t start = lane->step_start;
    const uint64_t end = now < lane->phase_since ? lane->phase_since : now;
    lane->phase_ticks[lane->phase] += end - lane->phase_since;
    lane->phase_gate = 0;
    lane->phase_since = end;
    sw__step_count(lane, end - start, flags);

    struct sw__step_used used = {.run_delay_ns = UINT64_MAX,
                                 .memory = {UINT64_MAX, UINT64_MAX}};
    const bool brief = (lane->step_flags & SW_STEP_BRIEF) != 0;
    const bool dear = !past && sw__step_usage(thread, start, end, brief, &used);
    const uint32_t bytes =
        (uint32_t)(sizeof(sw_record_step) + (used.has_io ? sizeof(sw_step_io) : 0));
    sw_record_step *step = sw__kept_room(thread, bytes);
    if (step) {
        /* Field by field: a whole value would be cleared first, which takes longer than to fill it. */
        step->head = (sw_record){
            .kind = SW_RECORD_STEP,
            .units = (uint8_t)(bytes / SW_RECORD_UNIT),
            .flags = (uint16_t)(SW_RECORD_INTERVAL | flags | lane->step_flags),
            .ticks = start};
        step->end = end;
        step->number = lane->step_number;
        step->epoch = lane->epoch
                          ? lane->epoch - 1
                          : atomic_load_explicit(&sw__domain_at(lane->domain)->epoch,
                                                 memory_order_relaxed);
        step->domain = lane->domain;
        step->unit = lane->step_unit;
        step->reserved = 0;
        step->usage_steps = used.steps;
        step->samples = atomic_load_explicit(&lane->samples, memory_order_relaxed);
        step->cpu_ns = used.cpu_ns;
        step->run_delay_ns = used.run_delay_ns;
        step->voluntary = used.voluntary;
        step->involuntary = used.involuntary;
        step->minor_faults = used.minor_faults;
        step->major_faults = used.major_faults;
        /* 0 is what older writers left there. */
        step->resident_bytes =
            used.memory.resident == UINT64_MAX ? 0 : used.memory.resident;
        step->anonymous_bytes =
            used.memory.resident == UINT64_MAX ? 0 : used.memory.anonymous;
        memcpy(step->phase_ticks, lane->phase_ticks, sizeof(step->phase_ticks));
        if (used.has_io) {
            memcpy(step + 1, &used.io, sizeof(used.io));
        }
        sw__step_publish(thread, bytes);
    }
    atomic_store_explicit(&lane->file->step_open, 0, memory_order_release);
    if (sw__session.settings.policy == SW_POLICY_AUTO) {
        sw__pool_step(&sw__session.pool, lane->step_number, start, end);
    }
    if (lane->domain == 0 && sw__session.settings.schedule.form != SW_SCHEDULE_ALWAYS) {
        atomic_store_explicit(&sw__events_on, false, memory_order_relaxed);
    }
    return dear;
}

static bool sw__step_is_open(const struct sw__lane *lane)
{
    return atomic_load_explicit(&lane->file->step_open, memory_order_relaxed) != 0;
}

void sw__step_close(struct sw__lane *lane, unsigned flags)
{
    if (sw__step_is_open(lane)) {
        sw__step_end_at(lane, flags, sw__clock_now(), false);
    }
}

/* What steps cost is measured: always where they read usage, which is most of it then, else one of so many. */
enum { SW__STEP_SAMPLED = 16 };
static void sw__step_cost(uint64_t began, uint64_t number, bool dear)
{
    if (dear || number % SW__STEP_SAMPLED == 0) {
        sw__cost_add(SW__TOTAL_STEP_TICKS, began, dear ? 1 : SW__STEP_SAMPLED);
    }
}

/* The lane for steps, busy; NULL when it cannot be had. */
struct sw__lane *sw__step_lane(sw_domain *domain)
{
    if (!sw__session_ready()) {
        return NULL;
    }
    domain = domain ? domain : sw__domain_at(0);
    if (!atomic_load_explicit(&domain->enabled, memory_order_relaxed) &&
        (domain->index || domain->name)) {
        return NULL;
    }
    return sw__lane_enter(domain->index);
}

void sw__step_open_at(struct sw__lane *lane, int unit, uint64_t now)
{
    struct sw_domain *owner = sw__domain_at(lane->domain);
    lane->step_number = atomic_fetch_add(&owner->next_step, 1);
    lane->step_unit = (uint8_t)unit;
    lane->step_flags = (uint16_t)(unit & SW_STEP_BRIEF);
    if (lane->domain == 0) {
        const sw_schedule *schedule = &sw__session.settings.schedule;
        enum sw_action action = sw_schedule_action(schedule, lane->step_number);
        if (schedule->form != SW_SCHEDULE_ALWAYS) {
            atomic_store_explicit(
                &sw__events_on, action >= SW_ACTION_RECORD && sw__session.settings.events,
                memory_order_relaxed);
        }
        lane->step_flags |= action == SW_ACTION_WARMUP ? SW_STEP_WARMUP : 0;
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        lane->step_flags |= SW_STEP_EVENTS;
    }
    memset(lane->phase_ticks, 0, sizeof(lane->phase_ticks));
    lane->mark = UINT64_MAX;
    sw__step_phases(lane);
    lane->phase_gate = SW_PHASE_COUNT;
    atomic_store_explicit(&lane->samples, 0, memory_order_relaxed);
    lane->step_start = lane->phase_since = now;
    lane->phases = 1u << lane->phase;
    atomic_store_explicit(&lane->file->step_begin, lane->step_start,
                          memory_order_relaxed);
    atomic_store_explicit(&lane->file->step_open, lane->step_number + 1,
                          memory_order_release);
}

/* Ends the open step as `flags` say and begins another. `joined`: at the same moment. */
static void sw__step_start(sw_domain *domain, int unit, unsigned flags, bool joined)
{
    struct sw__lane *lane = sw__step_lane(domain);
    if (!lane) {
        return;
    }
    uint64_t began = sw__clock_now();
    sw__helper_ensure();
    const bool ended = sw__step_is_open(lane);
    const bool dear =
        ended && sw__step_end_at(lane, flags, joined ? began : sw__clock_now(), false);
    sw__step_open_at(lane, unit, joined && ended ? lane->phase_since : sw__clock_now());
    const uint64_t number = lane->step_number;
    sw__lane_leave(lane);
    sw__step_cost(began, number, dear);
}

void sw_domain_step_begin(sw_domain *domain, int unit)
{
    sw__step_start(domain, unit, SW_STEP_INCOMPLETE, false);
}

void sw_step_next(int unit)
{
    sw__step_start(NULL, unit, 0, true);
}

void sw_step_brief(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (sw__step_is_open(lane)) {
        lane->step_flags |= SW_STEP_BRIEF;
    }
    sw__lane_leave(lane);
}

void sw_step_past(int unit, uint64_t begin, uint64_t end, uint64_t wait)
{
    sw_step_past_phases(unit, begin, end, wait, NULL);
}

void sw_step_past_phases(int unit, uint64_t begin, uint64_t end, uint64_t wait,
                         const uint64_t *phase_ticks)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (!sw__step_is_open(lane) && begin < end && wait <= end - begin) {
        lane->step_number = atomic_fetch_add(&sw__domain_at(lane->domain)->next_step, 1);
        lane->step_unit = (uint8_t)unit;
        lane->step_flags = (uint16_t)(unit & SW_STEP_BRIEF);
        lane->step_start = begin;
        memset(lane->phase_ticks, 0, sizeof(lane->phase_ticks));
        lane->phases = 1u << SW_PHASE_OTHER | 1u << SW_PHASE_DATA_WAIT;
        uint64_t rest = end - begin;
        for (unsigned p = 0; phase_ticks && p < SW_PHASE_COUNT; p++) {
            if (p != SW_PHASE_OTHER && p != SW_PHASE_DATA_WAIT && phase_ticks[p]) {
                const uint64_t ticks = phase_ticks[p] < rest ? phase_ticks[p] : rest;
                lane->phase_ticks[p] = ticks;
                lane->phases |= 1u << p;
                rest -= ticks;
            }
        }
        /* What was done while waiting, such as preparing the batch, has its own phase. */
        lane->phase_ticks[SW_PHASE_DATA_WAIT] = wait < rest ? wait : rest;
        lane->phase = SW_PHASE_OTHER;
        lane->phase_since = end - (rest - lane->phase_ticks[SW_PHASE_DATA_WAIT]);
        atomic_store_explicit(&lane->samples, 0, memory_order_relaxed);
        sw__step_end_at(lane, 0, end, true);
    }
    sw__lane_leave(lane);
}

void sw_phases_watch(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (!sw__step_is_open(lane) && !lane->phase_gate) {
        memset(lane->phase_ticks, 0, sizeof(lane->phase_ticks));
        sw__step_phases(lane);
        lane->phase_gate = SW_PHASE_COUNT;
        lane->phases = 1u << lane->phase;
        lane->step_start = lane->phase_since = sw__clock_now();
    }
    sw__lane_leave(lane);
}

uint64_t sw_step_phases(uint64_t *phase_ticks)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return 0;
    }
    uint64_t begin = 0;
    if (lane->phase_gate) {
        begin = lane->step_start;
        memcpy(phase_ticks, lane->phase_ticks, SW_PHASE_COUNT * sizeof *phase_ticks);
        const uint64_t now = sw__clock_now();
        phase_ticks[lane->phase] += now > lane->phase_since ? now - lane->phase_since : 0;
    }
    sw__lane_leave(lane);
    return begin;
}

void sw_step_cancel(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (atomic_load_explicit(&lane->file->step_open, memory_order_relaxed)) {
        lane->phase_gate = 0;
        atomic_store_explicit(&lane->file->step_open, 0, memory_order_release);
        /* Its number goes to the next one, unless another thread took one meanwhile. */
        uint64_t after = lane->step_number + 1;
        atomic_compare_exchange_strong(&sw__domain_at(lane->domain)->next_step, &after,
                                       lane->step_number);
        if (sw__session.settings.schedule.form != SW_SCHEDULE_ALWAYS) {
            atomic_store_explicit(&sw__events_on, false, memory_order_relaxed);
        }
    }
    sw__lane_leave(lane);
}

void sw_phase_charge(int phase, uint64_t since)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    const uint64_t now = sw__clock_now();
    if (sw__step_is_open(lane) && phase >= 0 && phase < SW_PHASE_COUNT &&
        sw__phase_within(lane->phase, (uint8_t)phase) == phase &&
        now > lane->phase_since) {
        uint64_t *running = &lane->phase_ticks[lane->phase];
        *running += now - lane->phase_since;
        lane->phase_since = now;
        since = since < lane->step_start ? lane->step_start : since;
        uint64_t moved = now > since ? now - since : 0;
        moved = moved < *running ? moved : *running;
        *running -= moved;
        lane->phase_ticks[phase] += moved;
        lane->phases |= 1u << phase;
    }
    sw__lane_leave(lane);
}

void sw_phase_mark(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (sw__step_is_open(lane)) {
        /* Where the last section has just ended, there is nothing to add and no clock to read. */
        lane->mark = lane->phase_ticks[SW_PHASE_OTHER];
    }
    sw__lane_leave(lane);
}

void sw_phase_claim(int phase)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return;
    }
    if (sw__step_is_open(lane) && lane->mark != UINT64_MAX && phase >= 0 &&
        phase < SW_PHASE_COUNT) {
        uint64_t *none = &lane->phase_ticks[SW_PHASE_OTHER];
        const uint64_t now = sw__clock_now();
        if (lane->phase == SW_PHASE_OTHER && now > lane->phase_since) {
            *none += now - lane->phase_since;
            lane->phase_since = now;
        }
        lane->phase_ticks[phase] += *none - lane->mark;
        *none = lane->mark;
        lane->phases |= 1u << phase;
        lane->mark = UINT64_MAX;
    }
    sw__lane_leave(lane);
}

static void sw__step_finish(sw_domain *domain, unsigned flags)
{
    struct sw__lane *lane = sw__step_lane(domain);
    if (lane) {
        uint64_t began = sw__clock_now();
        const uint64_t number = lane->step_number;
        const bool dear =
            sw__step_is_open(lane) && sw__step_end_at(lane, flags, began, false);
        sw__lane_leave(lane);
        sw__step_cost(began, number, dear);
    } else if (sw__lane_missing(domain ? domain->index : 0)) {
        sw__total_add(SW__TOTAL_STEPS_DROPPED, 1);
    }
}

void sw_domain_step_end(sw_domain *domain)
{
    sw__step_finish(domain, 0);
}

void sw_domain_step_abandon(sw_domain *domain)
{
    sw__step_finish(domain, SW_STEP_INCOMPLETE);
}

void sw_step_begin(void)
{
    sw_domain_step_begin(NULL, SW_STEP_MANUAL);
}

void sw_step_begin_unit(int unit)
{
    sw_domain_step_begin(NULL, unit);
}

void sw_step_end(void)
{
    sw__step_finish(NULL, 0);
}

void sw_step_abandon(void)
{
    sw__step_finish(NULL, SW_STEP_INCOMPLETE);
}

void sw_epoch(uint32_t epoch)
{
    if (sw__session_ready()) {
        atomic_store(&sw__domain_at(0)->epoch, epoch);
    }
    struct sw__lane *lane = sw__step_lane(NULL);
    if (lane) {
        lane->epoch = epoch + 1; /* UINT32_MAX, of none that is known, is 0. */
        sw__lane_leave(lane);
    }
}

void sw_update(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (lane) {
        atomic_fetch_add_explicit(&lane->file->updates, 1, memory_order_relaxed);
        sw__lane_leave(lane);
    }
}

int64_t sw_step_number(void)
{
    struct sw__lane *lane = sw__step_lane(NULL);
    if (!lane) {
        return -1;
    }
    uint64_t open = atomic_load_explicit(&lane->file->step_open, memory_order_relaxed);
    int64_t number =
        open ? (int64_t)open - 1 : (int64_t)atomic_load(&sw__domain_at(0)->next_step);
    sw__lane_leave(lane);
    return number;
}
