/* Traces for viewers, read back: what a viewer would make of the events. */
#ifndef TRACE_DOCUMENT_H
#define TRACE_DOCUMENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "run_fixture.h"

#define START 1000000000u /* the builder's first tick; here a tick is a nanosecond */

/* An event as a viewer would have it. */
struct shown {
    char ph, name[256], category[64];
    uint64_t pid, tid;
    double ts, dur, value;
    bool has_dur;
};

struct document {
    char *text;
    size_t length;
    struct shown *events;
    size_t count;
    char missing[2048]; /* sentences, one after the other */
};

static inline void scan_event(struct sw__scan *json, struct shown *out)
{
    char key[64], text[256];
    bool first = true;
    double number;
    *out = (struct shown){.value = -1};
    assert_true(sw__scan_enter(json, SW__SCAN_OBJECT));
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const enum sw__scan_kind kind = sw__scan_peek(json);
        if (kind == SW__SCAN_STRING) {
            assert_true(sw__scan_string(json, text, sizeof text) >= 0);
            if (strcmp(key, "ph") == 0) {
                out->ph = text[0];
            } else if (strcmp(key, "name") == 0) {
                strcpy(out->name, text);
            } else if (strcmp(key, "cat") == 0) {
                snprintf(out->category, sizeof out->category, "%.60s", text);
            }
        } else if (kind == SW__SCAN_NUMBER) {
            assert_true(sw__scan_number(json, &number));
            if (strcmp(key, "pid") == 0) {
                out->pid = (uint64_t)number;
            } else if (strcmp(key, "tid") == 0) {
                out->tid = (uint64_t)number;
            } else if (strcmp(key, "ts") == 0) {
                out->ts = number;
            } else if (strcmp(key, "dur") == 0) {
                out->dur = number;
                out->has_dur = true;
            }
        } else {
            assert_true(sw__scan_skip(json));
        }
    }
    assert_true(out->name[0] != '\0');
}

static inline void scan_about(struct sw__scan *json, struct document *out)
{
    char key[64], text[512];
    bool first = true, first_text = true;
    assert_true(sw__scan_enter(json, SW__SCAN_OBJECT));
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "missing") != 0) {
            assert_true(sw__scan_skip(json));
            continue;
        }
        assert_true(sw__scan_enter(json, SW__SCAN_ARRAY));
        while (sw__scan_element(json, &first_text)) {
            assert_true(sw__scan_string(json, text, sizeof text) > 0);
            strncat(out->missing, text, sizeof out->missing - strlen(out->missing) - 1);
        }
    }
}

/* Writes, reads back and checks what holds of every trace. */
static inline struct document export_it(const sw_run *run,
                                        const sw_trace_options *options)
{
    struct document out = {0};
    sw_error_info info = {0};
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_trace(writer, run, options, &info), 0);
    const char *text = sw_writer_text(writer, &out.length);
    out.text = strdup(text);
    assert_int_equal(strlen(out.text), out.length);
    assert_int_equal(sw_writer_close(writer, NULL), 0);

    struct sw__scan json = {.at = out.text, .end = out.text + out.length};
    char key[64];
    bool first = true;
    size_t room = 0;
    assert_true(sw__scan_enter(&json, SW__SCAN_OBJECT));
    while (sw__scan_member(&json, &first, key, sizeof key)) {
        if (strcmp(key, "stepwatch") == 0) {
            scan_about(&json, &out);
        } else if (strcmp(key, "traceEvents") == 0) {
            bool first_event = true;
            assert_true(sw__scan_enter(&json, SW__SCAN_ARRAY));
            while (sw__scan_element(&json, &first_event)) {
                if (out.count == room) {
                    room = room ? room * 2 : 256;
                    out.events = realloc(out.events, room * sizeof *out.events);
                }
                scan_event(&json, &out.events[out.count++]);
            }
        } else {
            assert_true(sw__scan_skip(&json));
        }
    }
    assert_false(json.bad);
    return out;
}

static inline void document_free(struct document *it)
{
    free(it->text);
    free(it->events);
}

static inline int by_track_and_time(const void *left, const void *right)
{
    const struct shown *a = left, *b = right;
    if (a->pid != b->pid || a->tid != b->tid) {
        return a->pid != b->pid ? (a->pid < b->pid ? -1 : 1) : a->tid < b->tid ? -1 : 1;
    }
    if (a->ts != b->ts) {
        return a->ts < b->ts ? -1 : 1;
    }
    return a->dur > b->dur ? -1 : a->dur < b->dur;
}

/* Every slice lies within the one around it or beside it. Sorts the events. How many slices there are. */
static inline size_t check_nesting(struct document *it)
{
    uint64_t *stack = calloc(it->count + 1, sizeof *stack);
    size_t depth = 0, slices = 0;
    const struct shown *last = NULL;
    qsort(it->events, it->count, sizeof *it->events, by_track_and_time);
    for (size_t i = 0; i < it->count; i++) {
        const struct shown *event = &it->events[i];
        if (event->ph != 'X') {
            continue;
        }
        assert_true(event->has_dur && event->dur >= 0);
        if (!last || last->pid != event->pid || last->tid != event->tid) {
            depth = 0;
        }
        last = event;
        const uint64_t begin = (uint64_t)(event->ts * 1000 + 0.5);
        const uint64_t end = begin + (uint64_t)(event->dur * 1000 + 0.5);
        while (depth && stack[depth - 1] <= begin) {
            depth--;
        }
        if (depth && end > stack[depth - 1]) {
            fail_msg("%s cuts into its neighbour", event->name);
        }
        stack[depth++] = end;
        slices++;
    }
    free(stack);
    return slices;
}

static inline const struct shown *find(const struct document *it, const char *name)
{
    for (size_t i = 0; i < it->count; i++) {
        if (strcmp(it->events[i].name, name) == 0) {
            return &it->events[i];
        }
    }
    return NULL;
}

static inline size_t count_of(const struct document *it, char ph, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < it->count; i++) {
        count +=
            it->events[i].ph == ph && (!name || strcmp(it->events[i].name, name) == 0);
    }
    return count;
}

static inline void open_run(struct fixture *fixture)
{
    assert_int_equal(sw_run_open(&fixture->run, fixture->folder, NULL), 0);
}

static inline struct tb *plain_trace(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->super.pid = 4242;
    tb_thread(tb, 0, "main");
    tb_name(tb, 1, "outer", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_name(tb, 2, "forward", SW__NAME_SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 3, "data", SW__NAME_SECTION, SW_PHASE_DATA_WAIT);
    tb_name(tb, 4, "loss", SW__NAME_COUNTER, SW_PHASE_INHERIT);
    return tb;
}

static const sw_trace_options kineto = {.format = SW_TRACE_KINETO};

#endif
