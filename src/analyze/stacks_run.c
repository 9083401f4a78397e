/* Sampled stacks from the tables of traces. Nothing in a file is believed: a row whose parent does not stand before it
 * is left out with all below it, so that no chain of rows can be endless. */
#include <math.h>
#include <string.h>

#include "analyze/stacks.h"
#include "analyze/summary.h"

struct job {
    sw_stacks *stacks;
    const sw_trace *trace;
    uint32_t *code;    /* functions by CODE index, SW__STACKS_FAIL: not made yet */
    uint32_t *context; /* tags by CONTEXT index; SW__STACKS_FAIL: no such row */
    uint32_t *stack;   /* nodes by STACK index; 0: no such row, or damaged */
};

static const char *name_text(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name && name->text ? name->text : "";
}

static bool is_main_thread(const sw_trace *trace, uint32_t thread)
{
    const sw_trace_thread *found =
        thread < sw_trace_thread_count(trace) ? sw_trace_get_thread(trace, thread) : NULL;
    return found && found->index == thread && found->tid != 0 &&
           found->tid == sw_trace_get_info(trace)->pid;
}

static int phase_of(const sw_row *row)
{
    const bool known = row->key[2] < SW_PHASE_COUNT || row->key[2] == SW_PHASE_BRIEF;
    return known && !(row->flags & SW_ROW_NO_STEP) ? (int)row->key[2] : SW_PHASE_INHERIT;
}

static int load_contexts(struct job *job)
{
    const size_t count = sw_trace_row_count(job->trace, SW_TABLE_CONTEXT);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(job->trace, SW_TABLE_CONTEXT, i);
        job->context[i] = SW__STACKS_FAIL;
        if (row) {
            const sw_stack_tag tag = {
                .thread = sw__thread_name(job->trace, row->key[0]),
                .section = name_text(job->trace, row->key[1]),
                .phase = phase_of(row),
                .pid = sw_trace_get_info(job->trace)->pid,
                .main = is_main_thread(job->trace, row->key[0]),
            };
            job->context[i] = sw__stacks_tag(job->stacks, &tag);
            if (job->context[i] == SW__STACKS_FAIL) {
                return SW_ENOMEM;
            }
        }
    }
    return SW_OK;
}

/* The frame of a STACK row. A function whose row is missing has no name. */
static uint32_t frame_of(struct job *job, const sw_row *row)
{
    const uint32_t index = row->key[1];
    const size_t codes = sw_trace_row_count(job->trace, SW_TABLE_CODE);
    uint32_t function = index < codes ? job->code[index] : SW__STACKS_FAIL;
    if (function == SW__STACKS_FAIL) {
        const sw_row *code = sw_trace_get_row(job->trace, SW_TABLE_CODE, index);
        function =
            code ? sw__stacks_function(job->stacks, name_text(job->trace, code->key[1]),
                                       name_text(job->trace, code->key[0]), code->key[2],
                                       code->flags & SW_ROW_NATIVE)
                 : sw__stacks_function(job->stacks, "", "", 0, false);
        if (function == SW__STACKS_FAIL) {
            return SW__STACKS_FAIL;
        }
        if (index < codes) {
            job->code[index] = function;
        }
    }
    return sw__stacks_frame(job->stacks, function, row->key[2]);
}

static int load_stacks(struct job *job, uint64_t *damaged)
{
    const size_t contexts = sw_trace_row_count(job->trace, SW_TABLE_CONTEXT);
    const size_t count = sw_trace_row_count(job->trace, SW_TABLE_STACK);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(job->trace, SW_TABLE_STACK, i);
        job->stack[i] = 0;
        if (!row) {
            continue;
        }
        const uint32_t above = row->key[0];
        const sw_stack_counts counts = {row->value[0], row->value[1], row->value[2]};
        uint32_t tag = SW__STACKS_FAIL;
        uint32_t parent = 0;
        if (row->flags & SW_ROW_IN_CONTEXT) {
            tag = above < contexts ? job->context[above] : SW__STACKS_FAIL;
        } else if (above < i && job->stack[above]) {
            parent = job->stack[above];
            tag = job->stacks->nodes[parent].tag;
        }
        if (tag == SW__STACKS_FAIL) {
            *damaged = sw__add(*damaged, sw__add(counts.running, counts.waiting));
            continue;
        }
        const uint32_t frame = frame_of(job, row);
        const uint32_t node = frame == SW__STACKS_FAIL
                                  ? SW__STACKS_FAIL
                                  : sw__stacks_node(job->stacks, tag, parent, frame);
        if (node == SW__STACKS_FAIL) {
            return SW_ENOMEM;
        }
        job->stack[i] = node;
        sw__stacks_count(job->stacks, node, &counts);
    }
    return SW_OK;
}

/* What the samplers of a trace say of themselves, and the period of its samples: the mean where several rates were
 * asked for one after the other. */
static void load_samplers(sw_stacks *stacks, const sw_trace *trace)
{
    double kept = 0;
    double seconds = 0;
    double first_s = NAN;
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_SAMPLER); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SAMPLER, i);
        if (!row) {
            continue;
        }
        const double hz = row->key[0];
        const sw_stacks_totals totals = {
            .samplers = 1,
            .hz = row->key[0] ? hz : NAN,
            .looks = row->value[0],
            .kept = row->value[1],
            .partial = row->value[2],
            .given_up = row->value[3],
            .cpu_s = (double)row->value[4] * sw_trace_ns_per_tick(trace) / 1e9,
        };
        sw_stacks_add_totals(stacks, &totals);
        if (row->key[0]) {
            first_s = isnan(first_s) ? 1 / hz : first_s;
            kept += (double)row->value[1];
            seconds += (double)row->value[1] / hz;
        }
    }
    sw_stacks_set_period(stacks, kept > 0 ? seconds / kept : first_s);
}

int sw__stacks_add_trace(sw_stacks *stacks, const sw_trace *trace)
{
    load_samplers(stacks, trace);
    const size_t rows = sw_trace_row_count(trace, SW_TABLE_STACK);
    if (rows == 0) {
        return SW_OK;
    }
    const size_t codes = sw_trace_row_count(trace, SW_TABLE_CODE);
    const size_t contexts = sw_trace_row_count(trace, SW_TABLE_CONTEXT);
    struct job job = {
        .stacks = stacks,
        .trace = trace,
        .code = sw__alloc_zero(codes + 1, sizeof *job.code),
        .context = sw__alloc_zero(contexts + 1, sizeof *job.context),
        .stack = sw__alloc_zero(rows, sizeof *job.stack),
    };
    sw_stacks_totals damage = {0};
    int error = job.code && job.context && job.stack ? SW_OK : SW_ENOMEM;
    if (!error) {
        memset(job.code, 0xff, codes * sizeof *job.code);
        error = load_contexts(&job);
    }
    if (!error) {
        error = load_stacks(&job, &damage.damaged);
    }
    sw_stacks_add_totals(stacks, &damage);
    sw__free(job.code);
    sw__free(job.context);
    sw__free(job.stack);
    return error;
}

int sw_stacks_of_run(sw_stacks **out, const sw_run *run, sw_error_info *info)
{
    int error = sw_stacks_create(out);
    for (size_t i = 0; !error && i < sw_run_count(run); i++) {
        error = sw__stacks_add_trace(*out, sw_run_trace(run, i));
    }
    error = error ? error : sw__stacks_settle(*out);
    if (error) {
        sw_stacks_free(*out);
        *out = NULL;
        return sw_error_set(info, error, "The samples could not be read: %s.",
                            sw_error_text(error));
    }
    return SW_OK;
}
