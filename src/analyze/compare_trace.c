/* A trace in Chrome's format as it is compared: its spans by name, whoever wrote it. */
#include <math.h>
#include <string.h>

#include "analyze/compare_trace.h"

#define NAME 512

/* What is read of an event. */
struct event {
    char name[NAME];
    char kind[4];
    double begin_us, duration_us;
};

static double number(struct sw__scan *json)
{
    double value = NAN;
    if (sw__scan_peek(json) != SW__SCAN_NUMBER) {
        (void)sw__scan_skip(json);
        return NAN;
    }
    return sw__scan_number(json, &value) && isfinite(value) ? value : NAN;
}

static void text(struct sw__scan *json, char *out, size_t size)
{
    out[0] = '\0';
    if (sw__scan_peek(json) != SW__SCAN_STRING) {
        (void)sw__scan_skip(json);
    } else if (sw__scan_string(json, out, size) < 0) {
        out[0] = '\0';
    }
}

static void read_event(struct sw__scan *json, struct event *event)
{
    char key[16];
    bool first = true;
    *event = (struct event){.begin_us = NAN, .duration_us = NAN};
    if (sw__scan_peek(json) != SW__SCAN_OBJECT) {
        (void)sw__scan_skip(json);
        return;
    }
    (void)sw__scan_enter(json, SW__SCAN_OBJECT);
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "name") == 0) {
            text(json, event->name, sizeof event->name);
        } else if (strcmp(key, "ph") == 0) {
            text(json, event->kind, sizeof event->kind);
        } else if (strcmp(key, "ts") == 0) {
            event->begin_us = number(json);
        } else if (strcmp(key, "dur") == 0) {
            event->duration_us = number(json);
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

/* A span has a name, a beginning and a length, of this world. */
static bool is_span(const struct event *event)
{
    return strcmp(event->kind, "X") == 0 && event->name[0] &&
           fabs(event->begin_us) < 1e18 && event->duration_us >= 0 &&
           event->duration_us < 1e15;
}

int sw__compare_trace(sw_compare_input *input, struct sw__scan *json, uint64_t *spans)
{
    struct event event;
    bool first = true;
    double begin_us = INFINITY;
    double end_us = -INFINITY;
    if (sw__scan_peek(json) != SW__SCAN_ARRAY) {
        (void)sw__scan_skip(json);
        return SW_OK;
    }
    (void)sw__scan_enter(json, SW__SCAN_ARRAY);
    while (sw__scan_element(json, &first)) {
        read_event(json, &event);
        if (json->bad || !is_span(&event)) {
            continue;
        }
        struct sw__measured *part =
            sw__measured_put(input, SW_COMPARED_SECTION, event.name, NULL, 0);
        if (!part) {
            return SW_ENOMEM;
        }
        sw__calls_add(part, 1, event.duration_us * 1e3, NAN);
        begin_us = fmin(begin_us, event.begin_us);
        end_us = fmax(end_us, event.begin_us + event.duration_us);
        ++*spans;
    }
    if (end_us >= begin_us) {
        input->trace = true;
        input->side.duration_s = (end_us - begin_us) / 1e6;
    }
    return SW_OK;
}
