/* Traces: steps and sections, of which most of a trace consists. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/json_put.h"
#include "export/trace_export.h"

/* Classes of fits: siblings have the same. */
enum { CLASS_STEP = 1, CLASS_SPAN = 16 };

/* Depths to which calls of modules are told who called them. */
#define PENDING_MOST 4096u

/* --- Calls of modules --- */

static bool is_module(const struct sw__trace_process *process, uint32_t id)
{
    return id < process->name_limit && process->modules[id / 8] >> id % 8 & 1;
}

/* Room for the ids of calls up to a depth. */
static uint64_t *pending_at(struct sw__track *track, size_t depth)
{
    if (depth >= PENDING_MOST) {
        return NULL;
    }
    if (depth >= track->pending_room) {
        const size_t room = depth + 16;
        uint64_t *pending = sw__realloc(track->pending, room, sizeof *pending);
        if (!pending) {
            return NULL;
        }
        memset(pending + track->pending_room, 0,
               (room - track->pending_room) * sizeof *pending);
        track->pending = pending;
        track->pending_room = room;
    }
    return &track->pending[depth];
}

/* A call ends before the one around it: it takes the number that those inside it were told, and makes one up for the next
 * module outside. 0: it has none. */
static void python_ids(struct sw__trace_export *it,
                       const struct sw__trace_process *process, struct sw__track *track,
                       const sw_trace_lane *lane, const sw_record_span *span,
                       uint64_t *own, uint64_t *parent)
{
    uint64_t *mine = pending_at(track, span->depth);
    *own = mine && *mine ? *mine : ++it->next_python_id;
    *parent = 0;
    if (mine) {
        *mine = 0;
    }
    uint32_t node = span->node;
    for (size_t depth = span->depth; lane && depth > 0 && node > 0; depth--) {
        if (node >= lane->node_count) {
            return;
        }
        node = lane->nodes[node].parent;
        if (node < lane->node_count && is_module(process, lane->nodes[node].section)) {
            uint64_t *around = pending_at(track, depth - 1);
            if (around) {
                *around = *around ? *around : ++it->next_python_id;
                *parent = *around;
            }
            return;
        }
    }
}

/* --- Sections --- */

/* Kineto has names for some things by which tools know them. */
static void kineto_section(struct sw__slice *slice, uint8_t phase, bool module)
{
    slice->category = module ? "python_function" : "user_annotation";
    if (module) {
        slice->prefix = "nn.Module: ";
    } else if (phase == SW_PHASE_DATA_WAIT) {
        slice->category = "cpu_op";
        slice->prefix = "enumerate(DataLoader)#";
        slice->suffix = ".__next__";
    }
}

static void put_flags(sw_writer *w, unsigned flags)
{
    if (flags & SW_RECORD_ERROR) {
        put_bool(w, "error", true);
    }
    if (flags & SW_RECORD_CUT) {
        put_bool(w, "unfinished", true);
    }
    if (flags & SW_RECORD_PART) {
        put_bool(w, "part", true);
    }
}

/* Numbers of the framework's own, by which work of a device is known, are kept as they are; ours must not be among them. */
#define OWN_IDS ((uint64_t)1 << 40)

uint64_t sw__trace_external(const struct sw__trace_export *it,
                            const struct sw__trace_process *process, uint64_t external)
{
    const uint64_t other = (uint64_t)(process - it->processes);
    return external && external < OWN_IDS ? external + other * OWN_IDS * 2 : 0;
}

void sw__trace_put_ids(struct sw__trace_export *it,
                       const struct sw__trace_process *process, uint64_t external)
{
    const uint64_t id = it->next_id++;
    const uint64_t known = sw__trace_external(it, process, external);
    put_uint(it->writer, "External id", known ? known : OWN_IDS + id);
    put_uint(it->writer, "Ev Idx", id);
}

static void put_python(struct sw__trace_export *it,
                       const struct sw__trace_process *process, struct sw__track *track,
                       size_t thread, const sw_record_span *span)
{
    uint64_t own, parent;
    python_ids(it, process, track, process->lanes[thread], span, &own, &parent);
    put_uint(it->writer, "Python id", own);
    sw_json_key(it->writer, "Python parent id");
    if (parent) {
        sw_json_uint(it->writer, parent);
    } else {
        sw_json_null(it->writer);
    }
    put_uint(it->writer, "Python module id", span->head.id);
}

static void put_span(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, size_t thread, const sw_record_span *span,
                     uint64_t begin_ns, uint64_t end_ns)
{
    sw_writer *w = it->writer;
    struct sw__slice slice = sw__slice_of_name(process->trace, span->head.id);
    const sw_trace_name *name = sw_trace_get_name(process->trace, span->head.id);
    const char *phase = name ? sw_phase_name(name->phase) : NULL;
    const bool module = is_module(process, span->head.id);
    char category[64];
    slice.begin_ns = begin_ns;
    slice.end_ns = end_ns;
    if (it->kineto) {
        kineto_section(&slice, name ? name->phase : SW_PHASE_INHERIT, module);
    } else {
        snprintf(category, sizeof category, "%s%s%s", module ? "module" : "section",
                 phase ? "," : "", phase ? phase : "");
        slice.category = category;
    }
    sw__slice_begin(it, process, track, &slice, CLASS_SPAN + span->depth);
    const unsigned flags =
        span->head.flags & (SW_RECORD_ERROR | SW_RECORD_CUT | SW_RECORD_PART);
    const bool args = it->kineto || flags;
    if (args) {
        sw__event_args(it);
    }
    for (size_t i = span->depth + 1u; i < track->pending_room; i++) {
        track->pending[i] = 0; /* of calls that are not in the trace */
    }
    if (it->kineto && module && span->domain == 0) {
        put_python(it, process, track, thread, span);
    } else if (it->kineto) {
        sw__trace_put_ids(it, process, 0);
    }
    put_flags(w, flags);
    sw__event_end(it, args);
    track->last_ns = end_ns > track->last_ns ? end_ns : track->last_ns;
    it->counts.sections++;
}

/* --- Steps --- */

static void put_phases(sw_writer *w, const sw_trace *trace, const sw_record_step *step)
{
    const double us = sw_trace_ns_per_tick(trace) / 1e3;
    sw_json_key(w, "phases_us");
    sw_json_object_begin(w);
    const bool brief = step->head.flags & SW_STEP_BRIEF;
    for (unsigned i = 0; i < SW_PHASE_COUNT; i++) {
        const bool known = !brief || SW_PHASES_ALWAYS >> i & 1;
        if (known && step->phase_ticks[i]) {
            const double whole = (double)step->phase_ticks[i] * us;
            put_double(w, sw_phase_name(i), (double)(int64_t)(whole * 1e3 + 0.5) / 1e3);
        }
    }
    sw_json_object_end(w);
}

/* Memory of the process, as the step has it: for the curve of TensorBoard's plug-in, and as a counter. */
static void put_memory(struct sw__trace_export *it, struct sw__trace_process *process,
                       const struct sw__slice *step, uint64_t bytes)
{
    sw_writer *w = it->writer;
    /* There is one curve of "[memory]", and that of the framework's allocator is the better one. */
    const bool curve = !it->kineto || process->allocations;
    struct sw__slice slice = {.name = curve ? "resident memory" : "[memory]",
                              .pid = step->pid,
                              .tid = step->tid,
                              .begin_ns = step->end_ns};
    slice.length = strlen(slice.name);
    slice.category = curve ? "memory" : "cpu_instant_event";
    sw__moment_begin(it, process, curve ? "C" : "i", &slice);
    if (!curve) {
        put_string(w, "s", "t");
    }
    sw__event_args(it);
    if (!curve) {
        put_uint(w, "Total Allocated", bytes);
        sw_json_key(w, "Bytes");
        sw_json_int(w, process->resident ? (int64_t)(bytes - process->resident) : 0);
        sw_json_key(w, "Device Id");
        sw_json_int(w, -1);
        put_uint(w, "Device Type", 0);
        put_uint(w, "Addr", 0);
        put_string(w, "What", "resident memory of the process");
    } else {
        put_uint(w, "bytes", bytes);
    }
    sw__event_end(it, true);
    process->resident = bytes;
}

static const char *unit_name(unsigned unit)
{
    static const char *const names[] = {"manual", "batch", "update", "loop"};
    return unit < sizeof names / sizeof names[0] ? names[unit] : "unknown";
}

static void put_step(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, const sw_record_step *step,
                     const sw_event *event)
{
    sw_writer *w = it->writer;
    const char *domain = sw_trace_domain_name(process->trace, step->domain);
    char name[96];
    snprintf(name, sizeof name, step->domain ? "%.60s step %llu" : "%sProfilerStep#%llu",
             step->domain && domain ? domain : "", (unsigned long long)step->number);
    struct sw__slice slice = {.name = name,
                              .length = strlen(name),
                              .category = it->kineto ? "user_annotation" : "step",
                              .begin_ns = event->begin_ns,
                              .end_ns = event->end_ns};
    sw__slice_begin(it, process, track, &slice, CLASS_STEP);
    sw__event_args(it);
    if (it->kineto) {
        sw__trace_put_ids(it, process, 0);
    }
    put_uint(w, "step", step->number);
    if (step->epoch != UINT32_MAX) {
        put_uint(w, "epoch", step->epoch);
    }
    put_string(w, "unit", unit_name(step->unit));
    if (step->head.flags & SW_STEP_INCOMPLETE) {
        put_bool(w, "incomplete", true);
    }
    if (step->head.flags & SW_STEP_WARMUP) {
        put_bool(w, "warmup", true);
    }
    if (step->head.flags & SW_STEP_BRIEF) {
        put_string(w, "watched", "in brief");
    }
    put_phases(w, process->trace, step);
    sw__event_end(it, true);
    it->counts.steps++;
    it->counts.bare_steps +=
        track->last_ns <= event->begin_ns && !(step->head.flags & SW_STEP_BRIEF);
    if (step->resident_bytes) {
        put_memory(it, process, &slice, step->resident_bytes);
    }
}

/* --- One record --- */

/* What lies within the window; of steps, those that were asked for. */
static bool is_wanted(const struct sw__trace_export *it,
                      const struct sw__trace_process *process, const sw_event *event)
{
    const uint64_t shift = (uint64_t)process->shift_ns;
    if (event->begin_ns + shift < it->from_ns || event->end_ns + shift > it->to_ns ||
        !sw__trace_in_stretch(it, event->begin_ns + shift, event->end_ns + shift)) {
        return false;
    }
    if (event->record->kind == SW_RECORD_STEP && it->options->some_steps) {
        const sw_record_step *step = (const sw_record_step *)(const void *)event->record;
        return step->number >= it->options->first_step &&
               step->number <= it->options->last_step;
    }
    return true;
}

void sw__trace_event(struct sw__trace_export *it, const sw_event *event)
{
    struct sw__trace_process *process = &it->processes[event->trace];
    if (!is_wanted(it, process, event) || event->thread >= process->track_count) {
        return;
    }
    struct sw__track *track = &process->tracks[event->thread];
    const bool operators = track->operators;
    const uint64_t tid = track->operators_of;
    track = sw__track_shown(track);
    const void *record = event->record;
    switch (event->record->kind) {
    case SW_RECORD_SPAN:
        if (operators) {
            sw__trace_operator(it, process, track, tid, event);
        } else {
            put_span(it, process, track, event->thread, record, event->begin_ns,
                     event->end_ns);
        }
        break;
    case SW_RECORD_STEP:
        put_step(it, process, track, record, event);
        break;
    default:
        sw__trace_record(it, process, track, event);
    }
}

/* --- What had not ended --- */

static void put_open_lane(struct sw__trace_export *it, struct sw__trace_process *process,
                          const sw_trace_lane *lane, size_t thread)
{
    const uint64_t end = sw_trace_get_info(process->trace)->end_ns;
    struct sw__track *track = &process->tracks[thread];
    bool step_left = lane->step_open && !it->options->some_steps;
    for (size_t i = lane->open_count + 1; i-- > 0;) {
        const sw_trace_open_span *open = i ? &lane->open[i - 1] : NULL;
        /* The step among them, where it began. */
        if (step_left && (!open || lane->step_open_begin_ns >= open->start_ns)) {
            const sw_record_step step = {
                .head = {.kind = SW_RECORD_STEP, .flags = SW_STEP_INCOMPLETE},
                .number = lane->step_open_number,
                .epoch = UINT32_MAX,
                .unit = UINT8_MAX,
                .domain = (uint16_t)lane->domain};
            const sw_event event = {.record = &step.head,
                                    .begin_ns = lane->step_open_begin_ns,
                                    .end_ns = end};
            step_left = false;
            if (is_wanted(it, process, &event)) {
                it->counts.unfinished++;
                put_step(it, process, track, &step, &event);
            }
        }
        if (!open || open->node >= lane->node_count) {
            continue;
        }
        const sw_record_span span = {.head = {.kind = SW_RECORD_SPAN,
                                              .flags = SW_RECORD_CUT,
                                              .id = lane->nodes[open->node].section},
                                     .node = open->node,
                                     .depth = (uint16_t)(i - 1),
                                     .domain = (uint16_t)lane->domain};
        const sw_event event = {
            .record = &span.head, .begin_ns = open->start_ns, .end_ns = end};
        if (is_wanted(it, process, &event)) {
            it->counts.unfinished++;
            put_span(it, process, track, thread, &span, open->start_ns, end);
        }
    }
}

void sw__trace_unfinished(struct sw__trace_export *it)
{
    for (size_t p = 0; p < it->count; p++) {
        struct sw__trace_process *process = &it->processes[p];
        for (size_t i = 0; i < sw_trace_lane_count(process->trace); i++) {
            const sw_trace_lane *lane = sw_trace_get_lane(process->trace, i);
            const struct sw__track *track = sw__track_of_thread(process, lane->thread);
            if (track) {
                put_open_lane(it, process, lane, (size_t)(track - process->tracks));
            }
        }
    }
}
