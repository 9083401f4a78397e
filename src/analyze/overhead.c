/* What recording cost and what was lost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/write.h>

#include "analyze/looking.h"

/* Calls of all sections and values of all counters in a trace. */
static void count_calls(const sw_trace *trace, uint64_t *sections, uint64_t *counters)
{
    for (size_t l = 0; l < sw_trace_lane_count(trace); l++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, l);
        for (size_t i = 1; i < lane->node_count; i++) {
            uint64_t *to = lane->nodes[i].kind == 1 ? counters : sections;
            *to = sw__add(*to, lane->nodes[i].calls);
        }
    }
}

/* CPU time that samplers used. */
static uint64_t sampler_ticks(const sw_trace *trace)
{
    uint64_t ticks = 0;
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_SAMPLER); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SAMPLER, i);
        ticks = sw__add(ticks, row ? row->value[4] : 0);
    }
    return ticks;
}

static double monitor_cpu_ns(const sw_trace *trace)
{
    double ns = 0;
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_SOURCE); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SOURCE, i);
        /* The monitor itself: its fourth value is its period, which no other row has. */
        ns +=
            row && row->key[3] == UINT32_MAX && row->value[3] ? (double)row->value[1] : 0;
    }
    return ns;
}

static bool is_named(const sw_trace *trace, uint32_t id, const char *text)
{
    const sw_trace_name *name = sw_trace_get_name(trace, id);
    return name && name->text && strcmp(name->text, text) == 0;
}

/* Time in which the program waited for torch's profiler to begin, to end and to be read. */
static double operators_ns(const sw_trace *trace)
{
    double ns = 0;
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_SETTING); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SETTING, i);
        double seconds = 0;
        if (row && is_named(trace, row->key[0], "operators") &&
            is_named(trace, row->key[1], "overhead_seconds")) {
            memcpy(&seconds, &row->value[0], sizeof seconds);
        }
        ns += seconds > 0 && seconds < 1e9 ? seconds * 1e9 : 0;
    }
    return ns;
}

/* What hooks in a framework take beside the sections that they make: Python's calls, looking things up, code and data that are in no
 * cache. Nothing measures that while it happens. Measured in pairs of runs with and without (docs/OVERHEAD.md), in ns where a section takes
 * SECTION_NS; machines differ by two either way. */
#define HOOK_NS 2200.0
#define MODULE_NS 800.0
#define STEP_NS 11000.0
/* Of a step that is watched in brief: some 9 us, of which the recorder measures its own part and the hook that waits for data counts
 * apart. A step that is looked at has it, too. */
#define BRIEF_STEP_NS 6000.0
#define SECTION_NS 30.0
#define HOOKS_OFF 2.0
#define SECTIONS_MOST (1u << 20)

struct hooks {
    double ns;
    uint64_t calls;
    uint64_t steps; /* that are reckoned as if watched in brief */
    /* Where most steps are watched in brief, what looking at the others took is measured. */
    struct sw__looking looking;
    bool some_brief;
    double looked; /* steps of the step thread that were looked at */
};

static int find_looking(const sw_summary *summary, struct hooks *hooks)
{
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    hooks->looking = (struct sw__looking){.ns = NAN};
    if (!steps || steps->brief == 0 || steps->count == 0) {
        return SW_OK;
    }
    hooks->looked = (double)(steps->count - steps->brief);
    hooks->some_brief = true;
    return sw__looking_cost(summary, &hooks->looking);
}

/* Sections that somebody writes by hand have no hook; where frameworks are watched, those of training phases are taken for theirs. */
static int count_hooks(const sw_summary *summary, size_t index, struct hooks *hooks)
{
    const sw_trace *trace = sw__summary_trace(summary, index);
    const uint64_t phases = 1u << SW_PHASE_LOSS | 1u << SW_PHASE_BACKWARD |
                            1u << SW_PHASE_OPTIMIZER | 1u << SW_PHASE_ZERO_GRAD |
                            1u << SW_PHASE_DATA_WAIT | 1u << SW_PHASE_SYNC |
                            1u << SW_PHASE_H2D;
    const bool jax = sw_trace_fact(trace, "jax_backend") != NULL;
    const size_t rows = sw_trace_row_count(trace, SW_TABLE_MODULE);
    if (rows == 0 && !jax) {
        return SW_OK;
    }
    struct {
        uint64_t modules, others, steps;
        uint64_t always; /* of `others`, in phases that are measured in every step */
    } here = {0};
    uint32_t most = 0;
    for (size_t i = 0; i < rows; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_MODULE, i);
        most = row && row->key[0] > most ? row->key[0] : most;
    }
    /* Sections are numbered one after the other; a damaged file may say otherwise. */
    most = most < SECTIONS_MOST ? most : SECTIONS_MOST;
    bool *module = sw__alloc_zero((size_t)most + 1, sizeof *module);
    if (!module) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_MODULE, i);
        if (row && row->key[0] <= most) {
            module[row->key[0]] = true;
        }
    }
    for (size_t l = 0; l < sw_trace_lane_count(trace); l++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, l);
        here.steps = sw__add(here.steps, lane->steps);
        for (size_t i = 1; i < lane->node_count; i++) {
            const sw_trace_node *node = &lane->nodes[i];
            const sw_trace_name *name =
                node->kind == 0 ? sw_trace_get_name(trace, node->section) : NULL;
            if (!name) {
                continue;
            }
            if (node->section <= most && module[node->section]) {
                here.modules = sw__add(here.modules, node->calls);
            } else if (name->phase < SW_PHASE_COUNT && phases >> name->phase & 1) {
                here.others = sw__add(here.others, node->calls);
                here.always = sw__add(
                    here.always, SW_PHASES_ALWAYS >> name->phase & 1 ? node->calls : 0);
            }
        }
    }
    const double slow = sw_trace_get_info(trace)->cost_section_ns / SECTION_NS;
    const double scale = slow > 0.5 ? (slow < 2 ? slow : 2) : 0.5;
    /* Where looking is measured, it is what steps that were looked at have beyond the others: left is what all of them have, which are
     * hooks of phases that are measured in every step, and the step itself. */
    const bool some = index == summary->step_trace && hooks->some_brief;
    const bool measured = some && !isnan(hooks->looking.ns);
    const double looked = measured ? 0
                          : some && hooks->looked < (double)here.steps
                              ? hooks->looked
                              : (double)here.steps;
    const double brief = (double)here.steps - looked;
    if (measured) {
        here.others = here.always;
        here.modules = 0;
    }
    hooks->ns +=
        scale * (HOOK_NS * (double)here.others + MODULE_NS * (double)here.modules +
                 STEP_NS * looked + BRIEF_STEP_NS * brief);
    hooks->steps = sw__add(hooks->steps, (uint64_t)brief);
    hooks->calls = sw__add(hooks->calls, sw__add(here.modules, here.others));
    sw__free(module);
    return SW_OK;
}

static void put_looking(char *out, size_t size, const struct hooks *hooks)
{
    const struct sw__looking *looking = &hooks->looking;
    char time[24], low[24], high[24], count[32], brief[32];
    sw_text_duration(time, hooks->looked * looking->ns, true);
    sw_text_duration(low, looking->low, true);
    sw_text_duration(high, looking->high, true);
    sw_text_count(count, (uint64_t)hooks->looked);
    sw_text_count(brief, looking->brief);
    snprintf(out, size,
             ", and %s for looking at %s steps in full, which took %s to %s longer than "
             "%s steps beside them that were watched in brief",
             time, count, low, high, brief);
}

int sw__summary_overhead(sw_summary *summary)
{
    sw_summary_overhead *overhead = &summary->overhead;
    double cost_ns = 0;
    double low_ns = 0;
    double high_ns = 0;
    double recorded_ns = 0;
    double helper_ns = 0;
    double section_cost = 0;
    double sampler_ns = 0;
    double monitor_ns = 0;
    double torch_ns = 0;
    struct hooks hooks = {0};
    bool profiled = false;
    bool calibrated = summary->traces > 0;
    if (find_looking(summary, &hooks)) {
        return SW_ENOMEM;
    }
    for (size_t t = 0; t < summary->traces; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        const sw_trace_info *info = sw_trace_get_info(trace);
        uint64_t sections = 0;
        uint64_t counters = 0;
        count_calls(trace, &sections, &counters);
        uint64_t published = sw__add(info->present, info->overwritten);
        uint64_t attempted = sw__add(published, info->dropped);
        overhead->calls = sw__add(overhead->calls, sections);
        overhead->events = sw__add(overhead->events, attempted);
        overhead->dropped = sw__add(overhead->dropped, info->dropped);
        overhead->overwritten = sw__add(overhead->overwritten, info->overwritten);

        /* A section that became a record cost the whole, another only its statistics. Steps,
         * counters and marks were timed as they happened. */
        double full = (double)sw__sub(published, counters);
        double stats = (double)sw__sub(sections, sw__sub(published, counters));
        double timed = ((double)info->step_ticks + (double)info->emit_ticks) *
                       sw_trace_ns_per_tick(trace);
        double cost = full * info->cost_section_ns + stats * info->cost_stats_ns + timed;
        double ratio_low = info->cost_section_low_ns / info->cost_section_ns;
        double ratio_high = info->cost_section_high_ns / info->cost_section_ns;
        if (!(info->cost_section_ns > 0) || !(ratio_low >= 0) || !(ratio_high >= 0)) {
            calibrated = false;
        }
        const double waited = operators_ns(trace);
        cost_ns += cost + waited;
        low_ns += cost * ratio_low + waited;
        high_ns += cost * ratio_high + waited;
        torch_ns += waited;
        if (count_hooks(summary, t, &hooks)) {
            return SW_ENOMEM;
        }
        recorded_ns += (double)sw__sub(info->end_ns, info->start_ns);
        helper_ns += (double)info->helper_cpu_ns;
        sampler_ns += (double)sampler_ticks(trace) * sw_trace_ns_per_tick(trace);
        monitor_ns += monitor_cpu_ns(trace);
        profiled = profiled || sw_trace_row_count(trace, SW_TABLE_PROFILE) > 0;
        section_cost += info->cost_section_ns / (double)summary->traces;
    }
    overhead->helper_cpu_s = helper_ns / 1e9;
    if (!calibrated) {
        overhead->percent = overhead->low = overhead->high = overhead->seconds = NAN;
        overhead->how = "not known: the recorder did not measure its own cost";
        return SW_OK;
    }
    cost_ns += hooks.ns;
    low_ns += hooks.ns / HOOKS_OFF;
    high_ns += hooks.ns * HOOKS_OFF;
    const bool looked = hooks.looking.ns >= 0;
    if (looked) {
        cost_ns += hooks.looked * hooks.looking.ns;
        low_ns += hooks.looked * hooks.looking.low;
        high_ns += hooks.looked * hooks.looking.high;
    }
    overhead->seconds = cost_ns / 1e9;
    overhead->percent = recorded_ns > 0 ? 100 * cost_ns / recorded_ns : NAN;
    overhead->low = recorded_ns > 0 ? 100 * low_ns / recorded_ns : NAN;
    overhead->high = recorded_ns > 0 ? 100 * high_ns / recorded_ns : NAN;
    char calls[32];
    char cost[24];
    char helper[24];
    char sampler[128] = "";
    char torch[640] = "";
    if (hooks.ns > 0) {
        char time[24], count[32], steps[32], brief[64] = "";
        sw_text_duration(time, hooks.ns, true);
        sw_text_count(count, hooks.calls);
        sw_text_count(steps, hooks.steps);
        if (hooks.steps > 0) {
            snprintf(brief, sizeof brief, " and what %s steps have in any case", steps);
        }
        snprintf(torch, sizeof torch,
                 ", and %s for %s hooks in the framework%s, reckoned from what they cost "
                 "elsewhere, half or twice that here",
                 time, count, brief);
    }
    if (looked) {
        put_looking(torch + strlen(torch), sizeof torch - strlen(torch), &hooks);
    }
    if (torch_ns > 0) {
        char time[24];
        sw_text_duration(time, torch_ns, true);
        snprintf(torch + strlen(torch), sizeof torch - strlen(torch),
                 ", and %s in which torch's profiler began, ended and was read", time);
    }
    if (sampler_ns > 0) {
        char time[24];
        sw_text_duration(time, sampler_ns, true);
        snprintf(sampler, sizeof sampler, ", its sampler %s", time);
    }
    if (monitor_ns > 0) {
        char time[24];
        sw_text_duration(time, monitor_ns, true);
        snprintf(sampler + strlen(sampler), sizeof sampler - strlen(sampler),
                 ", its monitor %s", time);
    }
    sw_text_count(calls, overhead->calls);
    sw_text_duration(cost, section_cost, true);
    sw_text_duration(helper, helper_ns, true);
    overhead->how =
        sw__summary_format(summary,
                           "%s section ends times %s each, as the recorder "
                           "measured at its start, and what it "
                           "measured of steps, counters and marks%s, over the "
                           "time recorded in all processes; its "
                           "helper thread used %s of CPU besides%s%s",
                           calls, cost, torch, helper, sampler,
                           profiled ? "; what counting every call or line "
                                      "costs is not in it, and is more"
                                    : "");
    return overhead->how ? SW_OK : SW_ENOMEM;
}

/* --- notes --- */

struct losses {
    uint64_t dropped, overwritten, reentrant, too_deep, names_folded, nodes_folded,
        unmatched;
    uint64_t bus_errors, steps_dropped, write_errors, hist_missed, clock_jumps;
    uint64_t killed, running, hot_missing, damaged;
    uint64_t profiles_cut; /* killed ones among them that counted calls or lines */
    uint32_t first_error;
};

static void add_losses(struct losses *sum, const sw_trace_info *info)
{
    sum->dropped = sw__add(sum->dropped, info->dropped);
    sum->overwritten = sw__add(sum->overwritten, info->overwritten);
    sum->reentrant = sw__add(sum->reentrant, info->reentrant);
    sum->too_deep = sw__add(sum->too_deep, info->too_deep);
    sum->names_folded = sw__add(sum->names_folded, info->names_folded);
    sum->nodes_folded = sw__add(sum->nodes_folded, info->nodes_folded);
    sum->unmatched = sw__add(sum->unmatched, info->unmatched);
    sum->bus_errors = sw__add(sum->bus_errors, info->bus_errors);
    sum->steps_dropped = sw__add(sum->steps_dropped, info->steps_dropped);
    sum->write_errors = sw__add(sum->write_errors, info->write_errors);
    sum->hist_missed = sw__add(sum->hist_missed, info->hist_missed);
    sum->clock_jumps += info->clock_jumps;
    sum->killed += info->end == SW_TRACE_KILLED;
    sum->running += info->end == SW_TRACE_RUNNING;
    sum->hot_missing += info->hot_missing;
    sum->damaged += info->damaged;
    sum->first_error = sum->first_error ? sum->first_error : info->first_error;
}

/* One sentence with a number in it, when the number is not 0. `one` and `many` hold one %s each. */
static int note_count(sw_summary *summary, uint64_t count, const char *one,
                      const char *many)
{
    if (count == 0) {
        return SW_OK;
    }
    char number[32];
    char text[512];
    sw_text_count(number, count);
    const char *form = count == 1 ? one : many;
    const char *hole = strstr(form, "%s");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(hole - form), form, number, hole + 2);
    return sw_summary_add_note(summary, text);
}

static int note_errno(sw_summary *summary, const struct losses *sum)
{
    if (sum->first_error == 0 || sum->first_error > 4095) {
        return SW_OK;
    }
    const char *text = strerrordesc_np((int)sum->first_error);
    return sw__summary_note(summary, "The first loss came with the error \"%s\".",
                            text ? text : "unknown");
}

int sw__summary_losses(sw_summary *summary)
{
    struct losses sum = {0};
    for (size_t t = 0; t < summary->traces; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        add_losses(&sum, sw_trace_get_info(trace));
        sum.killed -= sw__summary_dismissed(summary, t);
        sum.profiles_cut += sw_trace_get_info(trace)->end == SW_TRACE_KILLED &&
                            sw_trace_row_count(trace, SW_TABLE_PROFILE) > 0;
    }
    const struct {
        uint64_t count;
        const char *one, *many;
    } sentences[] = {
        {sum.killed,
         "%s process was killed or ended without closing its file; what it had recorded "
         "is here.",
         "%s processes were killed or ended without closing their files; what they had "
         "recorded is here."},
        {sum.profiles_cut,
         "%s of them was counting calls or lines: what it did last is not in those "
         "counts.",
         "%s of them were counting calls or lines: what they did last is not in those "
         "counts."},
        {sum.running,
         "%s process is still running; the report shows what it has recorded so far.",
         "%s processes are still running; the report shows what they have recorded so "
         "far."},
        {sum.hot_missing,
         "The memory of %s killed process is gone, and with it its last events.",
         "The memory of %s killed processes is gone, and with it their last events."},
        {sum.dropped,
         "%s event was dropped because there was no room; statistics and steps include "
         "it.",
         "%s events were dropped because there was no room; statistics and steps include "
         "them."},
        {sum.overwritten,
         "%s event was given up for others, as the policy says; statistics and steps "
         "include it.",
         "%s events were given up for others, as the policy says; statistics and steps "
         "include them."},
        {sum.steps_dropped, "%s record of steps or watchers was given up.",
         "%s records of steps and watchers were given up."},
        {sum.reentrant,
         "%s record was lost because a signal handler interrupted the recorder.",
         "%s records were lost because signal handlers interrupted the recorder."},
        {sum.too_deep, "%s section was nested too deep to be recorded.",
         "%s sections were nested too deep to be recorded."},
        {sum.names_folded,
         "%s name was folded into its family or into (more), for there were too many.",
         "%s names were folded into their families or into (more), for there were too "
         "many."},
        {sum.nodes_folded,
         "%s call was counted at its family or at (more), for the call tree was full.",
         "%s calls were counted at their families or at (more), for the call tree was "
         "full."},
        {sum.unmatched, "%s section was ended without having been begun.",
         "%s sections were ended without having been begun."},
        {sum.bus_errors, "%s page of memory was lost to a bus error.",
         "%s pages of memory were lost to bus errors."},
        {sum.write_errors, "%s write to the trace file failed.",
         "%s writes to the trace file failed."},
        {sum.hist_missed,
         "%s duration is missing in the percentiles, for there was no memory for it.",
         "%s durations are missing in the percentiles, for there was no memory for "
         "them."},
        {sum.clock_jumps,
         "The clock jumped %s time, as when a machine is suspended or migrated; times "
         "around it are uncertain.",
         "The clock jumped %s times, as when a machine is suspended or migrated; times "
         "around that are uncertain."},
    };
    int error = SW_OK;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0] && !error; i++) {
        error =
            note_count(summary, sentences[i].count, sentences[i].one, sentences[i].many);
    }
    if (!error) {
        error = note_errno(summary, &sum);
    }
    /* What the reader met, with the file where there are several. */
    for (size_t t = 0; t < summary->traces && !error; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        const char *text;
        for (size_t i = 0; !error && (text = sw_trace_note(trace, i)) != NULL; i++) {
            const char *path = sw_trace_get_info(trace)->path;
            const char *slash = path ? strrchr(path, '/') : NULL;
            error =
                summary->traces > 1 && path
                    ? sw__summary_note(summary, "%s: %s", slash ? slash + 1 : path, text)
                    : sw_summary_add_note(summary, text);
        }
    }
    const char *text;
    for (size_t i = 0; !error && (text = sw_run_note(summary->source, i)) != NULL; i++) {
        error = sw_summary_add_note(summary, text);
    }
    return error;
}
