/* Steps that were noted and not told yet when the process was looked at, or was killed: see <stepwatch/later.h>.
 *
 * They become what they would have been: records in a chunk of their own, and a part of the sums of their lane. */
#include <string.h>

#include "read/later.h"

/* What one step has, in ticks. */
struct part {
    uint64_t begin, end;
    uint64_t phase[SW_PHASE_SLOTS];
    uint32_t samples;
};

static void put_record(const struct sw__fmt_later *head, const struct part *part,
                       struct sw__later *later)
{
    const uint64_t took = part->end - part->begin;
    sw_record_step *step = &later->record[later->steps++];
    uint64_t rest = took;
    *step = (sw_record_step){
        .head = {.kind = SW_RECORD_STEP,
                 .units = sizeof *step / SW_RECORD_UNIT,
                 .flags = (uint16_t)(SW_RECORD_INTERVAL | head->flags),
                 .ticks = part->begin},
        .end = part->end,
        .number = later->open,
        .epoch = head->epoch,
        .unit = head->unit,
        .samples = part->samples,
        .run_delay_ns = UINT64_MAX,
    };
    for (unsigned i = 1; i < SW_PHASE_SLOTS; i++) {
        const uint64_t ticks = part->phase[i] < rest ? part->phase[i] : rest;
        step->phase_ticks[i] = ticks;
        later->phase_ticks[i] += ticks;
        rest -= ticks;
    }
    step->phase_ticks[SW_PHASE_OTHER] = rest;
    later->phase_ticks[SW_PHASE_OTHER] += rest;
    later->step_ticks += took;
    later->step_min = took < later->step_min ? took : later->step_min;
    later->step_max = took > later->step_max ? took : later->step_max;
    later->open++;
}

static void put_wait(const struct sw__fmt_note *note, struct part *part,
                     struct sw__later *later)
{
    later->waiting = note->wait_begin && !note->wait_end ? note->wait_begin : 0;
    if (note->wait_begin && note->wait_end) {
        const uint64_t end =
            note->wait_end > note->wait_begin ? note->wait_end : note->wait_begin;
        const uint64_t took = end - note->wait_begin;
        part->phase[SW_PHASE_DATA_WAIT] += took;
        later->wait[later->waits++] = (sw_record_span){
            .head = {.kind = SW_RECORD_SPAN,
                     .units = sizeof(sw_record_span) / SW_RECORD_UNIT,
                     .flags = SW_RECORD_INTERVAL,
                     .ticks = note->wait_begin},
            .end = end,
            .domain = (uint16_t)later->domain,
        };
    }
}

int sw__later_parse(const struct sw__fmt_lane *lane, const struct sw__fmt_later *head,
                    const struct sw__fmt_note *notes, uint32_t count,
                    struct sw__later *out)
{
    memset(out, 0, sizeof *out);
    /* Those that had been told when the process died: their steps are over. */
    uint64_t told = lane->step_open - 1 - head->base;
    if (lane->step_open == 0 || count == 0 || told > count) {
        return SW_ENOTFOUND;
    }
    out->thread = lane->thread;
    out->domain = lane->domain;
    out->node = head->wait;
    out->open = lane->step_open - 1;
    out->step_min = UINT64_MAX;
    struct part part = {.begin = lane->step_begin};
    if (told == 0) {
        memcpy(part.phase, head->phase_ticks, sizeof part.phase);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct sw__fmt_note *note = &notes[i];
        if (told > 0) {
            told -= note->begin != 0;
            if (told > 0 || note->begin == 0) {
                continue;
            }
            /* The step that it begins is the open one, as the lane has it. */
            part.begin = lane->step_begin;
        } else if (note->begin) {
            part.end = note->begin > part.begin ? note->begin : part.begin;
            put_record(head, &part, out);
            part = (struct part){.begin = part.end};
        }
        part.samples += note->samples;
        out->updates += note->updates;
        put_wait(note, &part, out);
    }
    out->open_begin = part.begin;
    return SW_OK;
}

/* Where single events are recorded the waits are, too: in the node that they are calls of, within what is open. */
static void name_waits(const sw_trace *trace, const struct sw__fmt_lane *lane,
                       struct sw__later *later)
{
    struct sw__fmt_node node;
    struct sw__fmt_frame frame;
    uint32_t offset, depth = 0;
    const struct sw__block *block =
        sw__index_find(trace, (uint64_t)later->node * 64, sizeof node, &offset);
    if (!block || block->kind != SW__BLOCK_NODES ||
        sw__block_read(trace, block, offset, &node, sizeof node) != sizeof node) {
        return;
    }
    block = sw__index_find(trace, lane->stack, sizeof frame, &offset);
    while (block && depth < UINT16_MAX &&
           sw__block_read_room(trace, block, offset + depth * (uint32_t)sizeof frame,
                               &frame, sizeof frame) == sizeof frame &&
           frame.node != 0) {
        depth++;
    }
    for (uint32_t i = 0; i < later->waits; i++) {
        later->wait[i].head.id = node.section;
        later->wait[i].node = node.index;
        later->wait[i].depth = (uint16_t)depth;
    }
    later->spans = true;
}

/* Reads what follows the lane of a block. */
static int load_lane(const sw_trace *trace, const struct sw__block *block,
                     struct sw__later *out)
{
    struct sw__fmt_lane lane;
    struct sw__fmt_later head;
    struct sw__fmt_note notes[SW__LATER_MOST];
    uint32_t offset;
    if (sw__block_read_room(trace, block, 0, &lane, sizeof lane) != sizeof lane ||
        lane.later == 0) {
        return SW_ENOTFOUND;
    }
    const struct sw__block *within =
        sw__index_find(trace, lane.later, sizeof head, &offset);
    if (!within ||
        sw__block_read_room(trace, within, offset, &head, sizeof head) != sizeof head) {
        return SW_ENOTFOUND;
    }
    uint32_t count = head.count < head.room ? head.count : head.room;
    count = count < SW__LATER_MOST ? count : SW__LATER_MOST;
    const size_t bytes = count * sizeof *notes;
    offset += (uint32_t)sizeof head;
    if (sw__block_read_room(trace, within, offset, notes, bytes) != bytes) {
        return SW_ENOTFOUND;
    }
    lane.thread = block->thread;
    lane.domain = block->domain;
    const int result = sw__later_parse(&lane, &head, notes, count, out);
    if (result == SW_OK && head.flags & SW_STEP_EVENTS) {
        name_waits(trace, &lane, out);
    }
    return result;
}

/* A chunk behind all others of the thread. */
static int add_chunk(sw_trace *trace, const struct sw__later *later,
                     enum sw__fmt_kind kind, const void *records, size_t bytes)
{
    struct sw__block *chunk = bytes ? sw__index_add(trace) : NULL;
    if (chunk) {
        *chunk = (struct sw__block){
            .sequence = UINT64_MAX,
            .thread = later->thread,
            .domain = later->domain,
            .used = (uint32_t)bytes,
            .size = (uint32_t)(sizeof(struct sw__fmt_block) + bytes),
            .copy = records,
            .kind = (uint16_t)kind,
        };
    }
    return chunk || !bytes ? SW_OK : SW_ENOMEM;
}

int sw__later_load(sw_trace *trace)
{
    const size_t count = trace->state_count;
    struct sw__later found;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (trace->blocks[i].kind != SW__BLOCK_LANE ||
            load_lane(trace, &trace->blocks[i], &found) != SW_OK) {
            continue;
        }
        struct sw__later *kept =
            sw__arena_take(trace->arena, sizeof *kept, _Alignof(struct sw__later));
        if (!kept) {
            return SW_ENOMEM;
        }
        *kept = found;
        kept->next = trace->later;
        trace->later = kept;
        any = true;
        if (add_chunk(trace, kept, SW__BLOCK_STEPS, kept->record,
                      kept->steps * sizeof *kept->record) != SW_OK ||
            (kept->spans && add_chunk(trace, kept, SW__BLOCK_EVENTS, kept->wait,
                                      kept->waits * sizeof *kept->wait) != SW_OK)) {
            return SW_ENOMEM;
        }
    }
    if (any) {
        sw__index_merge(trace); /* Chunks lie where they belong. */
    }
    return SW_OK;
}

const struct sw__later *sw__later_of(const sw_trace *trace, uint32_t thread,
                                     uint32_t domain)
{
    const struct sw__later *at = trace->later;
    while (at && (at->thread != thread || at->domain != domain)) {
        at = at->next;
    }
    return at;
}

void sw__later_add(const struct sw__later *later, struct sw__fmt_lane *lane)
{
    lane->step_open = later->open + 1;
    lane->step_begin = later->open_begin;
    lane->updates += later->updates;
    if (later->steps == 0) {
        return;
    }
    if (lane->steps == lane->steps_incomplete) {
        lane->step_min = UINT64_MAX;
        lane->step_max = 0;
    }
    lane->steps += later->steps;
    lane->step_ticks = sw__add_saturating(lane->step_ticks, later->step_ticks);
    lane->step_min = later->step_min < lane->step_min ? later->step_min : lane->step_min;
    lane->step_max = later->step_max > lane->step_max ? later->step_max : lane->step_max;
    for (unsigned i = 0; i < SW_PHASE_SLOTS; i++) {
        lane->phase_ticks[i] =
            sw__add_saturating(lane->phase_ticks[i], later->phase_ticks[i]);
    }
}

int sw__later_histogram(const struct sw__later *later, bool steps, sw_histogram *into)
{
    const uint32_t count = !later ? 0 : steps ? later->steps : later->waits;
    int result = SW_OK;
    for (uint32_t i = 0; i < count && result == SW_OK; i++) {
        const sw_record_step *step = &later->record[i];
        const sw_record_span *wait = &later->wait[i];
        result = sw_histogram_add(
            into, steps ? step->end - step->head.ticks : wait->end - wait->head.ticks, 1);
    }
    return result;
}
