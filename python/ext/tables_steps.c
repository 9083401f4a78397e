/* The table of steps. */
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const core_column step_columns[] = {
    {"step", CORE_INTEGER, false},
    {"epoch", CORE_INTEGER, true},
    {"begin_ns", CORE_INTEGER, false},
    {"duration_ns", CORE_INTEGER, false},
    {"unit", CORE_NAME, true},
    {"incomplete", CORE_TRUTH, false},
    {"warmup", CORE_TRUTH, false},
    {"brief", CORE_TRUTH, false},
#define PHASE_COLUMN(number, name, text) {text "_ns", CORE_INTEGER, true},
    SW_PHASE_TABLE(PHASE_COLUMN)
#undef PHASE_COLUMN
        {"usage_steps", CORE_INTEGER, true},
    {"cpu_ns", CORE_INTEGER, true},
    {"run_delay_ns", CORE_INTEGER, true},
    {"voluntary", CORE_INTEGER, true},
    {"involuntary", CORE_INTEGER, true},
    {"minor_faults", CORE_INTEGER, true},
    {"major_faults", CORE_INTEGER, true},
    {"samples", CORE_INTEGER, true},
    {"thread", CORE_NAME, true},
    {"pid", CORE_INTEGER, false},
    {"domain", CORE_NAME, true},
};

#define LOOKED 0x80000000u

/* Phases that some section of the domain has, one bit each: the others were not measured. */
static uint32_t measured(core_reader *reader, const sw_event *event, uint32_t domain)
{
    const sw_trace *trace = core_reader_trace(reader, event);
    uint32_t *found =
        &reader->phases[event->trace * (size_t)CORE_DOMAINS + domain % CORE_DOMAINS];
    if (*found & LOOKED) {
        return *found;
    }
    const uint32_t limit = sw_trace_name_limit(trace);
    *found = LOOKED | 1u << SW_PHASE_OTHER;
    for (uint32_t id = 1; id < limit; id++) {
        const sw_trace_name *name = sw_trace_get_name(trace, id);
        if (name && name->use == 1 && name->domain == domain &&
            name->phase < SW_PHASE_COUNT) {
            *found |= 1u << name->phase;
        }
    }
    return *found;
}

typedef unsigned __int128 wide;

/* Ticks to ns by their borders, so that the phases sum to the step's duration exactly. Slots that have no name yet count as
 * `other`, as does what the ticks do not cover, and phases that a step which was watched in brief knows only in part. */
static void phases_of(const sw_record_step *step, uint64_t duration,
                      uint64_t ticks[SW_PHASE_COUNT], uint64_t ns[SW_PHASE_COUNT])
{
    wide sum = 0;
    const uint32_t all = (1u << SW_PHASE_COUNT) - 1;
    const uint32_t seen = step->head.flags & SW_STEP_BRIEF ? SW_PHASES_ALWAYS : all;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        const bool known = i < SW_PHASE_COUNT && seen >> i & 1;
        ticks[known ? i : SW_PHASE_OTHER] += step->phase_ticks[i];
        sum += step->phase_ticks[i];
    }
    const uint64_t from = sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
    wide passed = 0;
    uint64_t border = 0;
    for (size_t i = 0; i < SW_PHASE_COUNT; i++) {
        passed += ticks[i];
        const wide reached = passed < from ? passed : from;
        const uint64_t next = from ? (uint64_t)(reached * duration / from) : 0;
        ns[i] = next - border;
        border = next;
    }
    ns[SW_PHASE_OTHER] += duration - border;
}

static const char *unit_name(unsigned unit)
{
    static const char *const names[] = {"manual", "batch", "update", "loop"};
    return unit < COUNT(names) ? names[unit] : NULL;
}

static void step_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_step *step = (const sw_record_step *)(const void *)event->record;
    const sw_trace *trace = core_reader_trace(reader, event);
    const unsigned flags = step->head.flags;
    const uint64_t duration =
        event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0;
    core_put_count(cell++, step->number);
    core_put_integer(cell++, step->epoch == UINT32_MAX ? SW_UNKNOWN : step->epoch);
    core_put_count(cell++, event->begin_ns);
    core_put_count(cell++, duration);
    core_put_text(cell++, unit_name(step->unit));
    core_put_truth(cell++, (flags & (SW_STEP_INCOMPLETE | SW_RECORD_CUT)) != 0);
    core_put_truth(cell++, (flags & SW_STEP_WARMUP) != 0);
    core_put_truth(cell++, (flags & SW_STEP_BRIEF) != 0);

    uint64_t ticks[SW_PHASE_COUNT] = {0};
    uint64_t ns[SW_PHASE_COUNT];
    phases_of(step, duration, ticks, ns);
    const uint32_t known = measured(reader, event, step->domain);
    const uint32_t all = (1u << SW_PHASE_COUNT) - 1;
    const uint32_t seen =
        flags & SW_STEP_BRIEF ? SW_PHASES_ALWAYS | 1u << SW_PHASE_OTHER : all;
    for (size_t i = 0; i < SW_PHASE_COUNT; i++) {
        const bool there = seen >> i & 1 && (ns[i] || known >> i & 1);
        core_put_integer(cell++, there ? ns[i] : SW_UNKNOWN);
    }

    const bool usage = step->usage_steps != 0;
    core_put_integer(cell++, usage ? step->usage_steps : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->cpu_ns : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->run_delay_ns : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->voluntary : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->involuntary : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->minor_faults : SW_UNKNOWN);
    core_put_integer(cell++, usage ? step->major_faults : SW_UNKNOWN);
    /* Without a sampler, 0 hits say nothing. */
    const bool sampled = step->samples || sw_trace_row_count(trace, SW_TABLE_SAMPLER) > 0;
    core_put_integer(cell++, sampled ? step->samples : SW_UNKNOWN);
    core_put_text(cell++, core_thread_of(trace, event->thread));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, step->domain));
}

const core_table_kind core_table_steps = {
    .name = "steps",
    .columns = step_columns,
    .column_count = COUNT(step_columns),
    .events = 1u << SW_RECORD_STEP,
    .from_event = step_row,
};
