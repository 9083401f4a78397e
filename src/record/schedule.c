/* Schedules: step → action, and their form as text.
 *
 * Everything is reckoned by subtraction from the step towards the origin, never by addition to it,
 * so that no schedule and no step number can overflow. A step that is recorded alone (forms every
 * and steps) is the last of its cycle. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/schedule.h>

#include "base/compiler.h"

static bool has_step(const sw_schedule *schedule, uint64_t step)
{
    size_t low = 0;
    size_t high = schedule->step_count;
    if (high > SW_SCHEDULE_STEPS_MAX) {
        high = SW_SCHEDULE_STEPS_MAX;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (schedule->steps[middle] == step) {
            return true;
        }
        if (schedule->steps[middle] < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* Steps of a whole cycle; UINT64_MAX where the sum is beyond that: such a cycle never ends. */
static uint64_t cycle_length(const sw_schedule *schedule)
{
    uint64_t sum = schedule->wait;
    if (__builtin_add_overflow(sum, schedule->warmup, &sum) ||
        __builtin_add_overflow(sum, schedule->active, &sum)) {
        return UINT64_MAX;
    }
    return sum;
}

static enum sw_action action_in_cycle(const sw_schedule *schedule, uint64_t step)
{
    uint64_t length = cycle_length(schedule);
    uint64_t period = schedule->every > length ? schedule->every : length;
    if (period == 0 || (schedule->repeat != 0 && step / period >= schedule->repeat)) {
        return SW_ACTION_NONE;
    }
    uint64_t place = step % period;
    if (place < schedule->wait) {
        return SW_ACTION_NONE;
    }
    place -= schedule->wait;
    if (place < schedule->warmup) {
        return SW_ACTION_WARMUP;
    }
    place -= schedule->warmup;
    if (place >= schedule->active) {
        return SW_ACTION_NONE;
    }
    return place == schedule->active - 1 ? SW_ACTION_SAVE : SW_ACTION_RECORD;
}

enum sw_action sw_schedule_action(const sw_schedule *schedule, uint64_t step)
{
    if (!schedule) {
        return SW_ACTION_RECORD;
    }
    if (step < schedule->skip_first) {
        return SW_ACTION_NONE;
    }
    step -= schedule->skip_first;
    bool alone = false;
    switch (schedule->form) {
    case SW_SCHEDULE_CYCLE:
        return action_in_cycle(schedule, step);
    case SW_SCHEDULE_EVERY:
        alone = schedule->every != 0 && step % schedule->every == 0;
        return alone ? SW_ACTION_SAVE : SW_ACTION_NONE;
    case SW_SCHEDULE_STEPS:
        return has_step(schedule, step) ? SW_ACTION_SAVE : SW_ACTION_NONE;
    default:
        return SW_ACTION_RECORD;
    }
}

static int compare_steps(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorts the steps, drops repeated ones and clears the room behind them, so that schedules of
 * the same meaning are the same bytes. Whether anything moved. */
static bool order_steps(sw_schedule *schedule)
{
    bool moved = false;
    for (uint32_t i = 1; i < schedule->step_count; i++) {
        moved |= schedule->steps[i - 1] >= schedule->steps[i];
    }
    qsort(schedule->steps, schedule->step_count, sizeof schedule->steps[0],
          compare_steps);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (kept == 0 || schedule->steps[kept - 1] != schedule->steps[i]) {
            schedule->steps[kept++] = schedule->steps[i];
        }
    }
    schedule->step_count = kept;
    memset(schedule->steps + kept, 0,
           (SW_SCHEDULE_STEPS_MAX - kept) * sizeof schedule->steps[0]);
    return moved;
}

/* What makes a schedule useless, as opposed to what sw_schedule_check can put right. */
static int check_form(const sw_schedule *schedule, sw_error_info *info)
{
    switch (schedule->form) {
    case SW_SCHEDULE_ALWAYS:
        return SW_OK;
    case SW_SCHEDULE_CYCLE:
        if (schedule->active == 0) {
            return sw_error_set(info, SW_EINVAL,
                                "a cycle records nothing without active=N, N at least 1");
        }
        if (cycle_length(schedule) == UINT64_MAX) {
            return sw_error_set(info, SW_EINVAL,
                                "wait + warmup + active is too large a number");
        }
        return SW_OK;
    case SW_SCHEDULE_EVERY:
        if (schedule->every == 0) {
            return sw_error_set(info, SW_EINVAL,
                                "every=0 records nothing; every=1 is all");
        }
        return SW_OK;
    case SW_SCHEDULE_STEPS:
        if (schedule->step_count == 0 || schedule->step_count > SW_SCHEDULE_STEPS_MAX) {
            return sw_error_set(info, SW_EINVAL, "steps= takes 1 to %d steps, not %u",
                                SW_SCHEDULE_STEPS_MAX, (unsigned)schedule->step_count);
        }
        return SW_OK;
    default:
        return sw_error_set(info, SW_EINVAL, "%u is not a form of a schedule",
                            (unsigned)schedule->form);
    }
}

int sw_schedule_check(sw_schedule *schedule, const char **warning, sw_error_info *info)
{
    const char *unused;
    warning = warning ? warning : &unused;
    *warning = NULL;
    if (!schedule) {
        return sw_error_set(info, SW_EINVAL, "there is no schedule to check");
    }
    int result = check_form(schedule, info);
    if (result != SW_OK) {
        return result;
    }
    /* What a form does not use is cleared: left there, it would make equal schedules differ. */
    sw_schedule clean = {.form = schedule->form, .skip_first = schedule->skip_first};
    switch (schedule->form) {
    case SW_SCHEDULE_CYCLE:
        clean.repeat = schedule->repeat;
        clean.every = schedule->every;
        clean.wait = schedule->wait;
        clean.warmup = schedule->warmup;
        clean.active = schedule->active;
        if (clean.every != 0 && clean.every < cycle_length(&clean)) {
            clean.every = cycle_length(&clean);
            *warning =
                "the cycle of the schedule is longer than its period; the next cycle "
                "begins when the last one has ended";
        }
        break;
    case SW_SCHEDULE_EVERY:
        clean.every = schedule->every;
        break;
    case SW_SCHEDULE_STEPS:
        clean.step_count = schedule->step_count;
        memcpy(clean.steps, schedule->steps,
               schedule->step_count * sizeof schedule->steps[0]);
        if (order_steps(&clean)) {
            *warning = "the steps of the schedule were sorted and repeated ones left out";
        }
        break;
    default:
        break;
    }
    *schedule = clean;
    return SW_OK;
}

/* The words of a schedule that take a number, and where the number goes. */
struct key {
    const char *name;
    size_t offset;
    bool of_cycle; /* makes it a cycle */
};
static const struct key keys[] = {
    {"wait", offsetof(sw_schedule, wait), true},
    {"warmup", offsetof(sw_schedule, warmup), true},
    {"active", offsetof(sw_schedule, active), true},
    {"repeat", offsetof(sw_schedule, repeat), true},
    {"every", offsetof(sw_schedule, every), false},
    {"skip_first", offsetof(sw_schedule, skip_first), false},
    {"steps", offsetof(sw_schedule, steps), false},
};
enum { KEY_REPEAT = 3, KEY_EVERY = 4, KEY_SKIP = 5, KEY_STEPS = 6, KEY_ALWAYS = 7 };

/* A piece of the text that is read; `start` is where all of it began, for messages. */
struct word {
    const char *start;
    const char *at;
    size_t length;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct word trimmed(struct word word)
{
    while (word.length > 0 && is_blank(word.at[0])) {
        word.at++;
        word.length--;
    }
    while (word.length > 0 && is_blank(word.at[word.length - 1])) {
        word.length--;
    }
    return word;
}

/* Fails with the offending word, its place counted from 1, and what is wrong with it. */
static int refuse(sw_error_info *info, struct word word, const char *problem)
{
    int shown = word.length > 40 ? 40 : (int)word.length;
    return sw_error_set(info, SW_EINVAL, "\"%.*s\" (character %zu of the schedule) %s",
                        shown, word.at, (size_t)(word.at - word.start) + 1, problem);
}

static int read_number(struct word word, uint64_t most, uint64_t *out,
                       sw_error_info *info)
{
    if (word.length == 0) {
        return refuse(info, word, "should be a number");
    }
    uint64_t number = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return refuse(info, word, "is not a whole number of steps");
        }
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(word.at[i] - '0'), &number)) {
            return refuse(info, word, "is too large a number");
        }
    }
    if (number > most) {
        return refuse(info, word, "is too large a number");
    }
    *out = number;
    return SW_OK;
}

static int add_step(sw_schedule *out, struct word word, sw_error_info *info)
{
    if (out->step_count == SW_SCHEDULE_STEPS_MAX) {
        return refuse(info, word, "is one step too many; 256 can be named");
    }
    int result = read_number(word, UINT64_MAX, &out->steps[out->step_count], info);
    out->step_count += result == SW_OK;
    return result;
}

/* Reads one "key=number"; `*seen` has a bit for each key that was there. A bare number goes on
 * with the list that `*last` says is open. */
static int read_word(sw_schedule *out, struct word word, unsigned *seen, size_t *last,
                     sw_error_info *info)
{
    const char *sign = memchr(word.at, '=', word.length);
    size_t before = sign ? (size_t)(sign - word.at) : word.length;
    struct word name = trimmed((struct word){word.start, word.at, before});
    if (name.length == 0) {
        return refuse(info, word, "should be a word such as active=3");
    }
    size_t key = 0;
    if (!sign && name.at[0] >= '0' && name.at[0] <= '9' && *last == KEY_STEPS) {
        return add_step(out, name, info);
    }
    while (key < SW__COUNTOF(keys) &&
           (strlen(keys[key].name) != name.length ||
            memcmp(keys[key].name, name.at, name.length) != 0)) {
        key++;
    }
    if (key == KEY_ALWAYS && (name.length != 6 || memcmp(name.at, "always", 6) != 0)) {
        return refuse(
            info, name,
            "is not a word of a schedule; known are always, wait, warmup, active, "
            "repeat, every, skip_first and steps");
    }
    if (*seen & 1u << key) {
        return refuse(info, name, "is given twice");
    }
    *seen |= 1u << key;
    *last = key;
    if (key == KEY_ALWAYS) {
        return sign ? refuse(info, name, "takes no number") : SW_OK;
    }
    if (!sign) {
        return refuse(info, name, "should be followed by = and a number");
    }
    struct word value =
        trimmed((struct word){word.start, sign + 1, word.length - before - 1});
    if (key == KEY_STEPS) {
        return add_step(out, value, info);
    }
    uint64_t number = 0;
    int result =
        read_number(value, key == KEY_REPEAT ? UINT32_MAX : UINT64_MAX, &number, info);
    if (result == SW_OK && key == KEY_REPEAT) {
        out->repeat = (uint32_t)number;
    } else if (result == SW_OK) {
        memcpy((char *)out + keys[key].offset, &number, sizeof number);
    }
    return result;
}

/* The form follows from the words that were there. Words of two forms contradict each other. */
static int choose_form(sw_schedule *out, unsigned seen, sw_error_info *info)
{
    unsigned cycle = 0;
    for (size_t key = 0; key < SW__COUNTOF(keys); key++) {
        cycle |= keys[key].of_cycle ? seen & 1u << key : 0;
    }
    bool every = seen & 1u << KEY_EVERY;
    bool steps = seen & 1u << KEY_STEPS;
    if (seen & 1u << KEY_ALWAYS && (cycle || every || steps)) {
        return sw_error_set(info, SW_EINVAL,
                            "\"always\" goes with skip_first only, not with other words");
    }
    if (steps && (cycle || every)) {
        return sw_error_set(info, SW_EINVAL,
                            "\"steps\" goes with skip_first only, not with other words");
    }
    out->form = cycle   ? SW_SCHEDULE_CYCLE
                : every ? SW_SCHEDULE_EVERY
                : steps ? SW_SCHEDULE_STEPS
                        : SW_SCHEDULE_ALWAYS;
    return check_form(out, info);
}

int sw_schedule_parse(sw_schedule *out, const char *text, sw_error_info *info)
{
    if (!out) {
        return sw_error_set(info, SW_EINVAL, "there is no room for the schedule");
    }
    memset(out, 0, sizeof *out);
    struct word all = {text, text, text ? strlen(text) : 0};
    if (!text || trimmed(all).length == 0) {
        return sw_error_set(info, SW_EINVAL,
                            "the schedule is empty; \"always\" records every step");
    }
    unsigned seen = 0;
    size_t last = KEY_ALWAYS;
    int result = SW_OK;
    for (const char *at = text; at && result == SW_OK;) {
        size_t length = strcspn(at, ",");
        struct word word = trimmed((struct word){text, at, length});
        result = read_word(out, word, &seen, &last, info);
        at = at[length] ? at + length + 1 : NULL;
    }
    if (result == SW_OK) {
        result = choose_form(out, seen, info);
    }
    if (result != SW_OK) {
        memset(out, 0, sizeof *out);
        return result;
    }
    order_steps(out);
    return SW_OK;
}

/* Appends as snprintf does and returns the length that the whole has by now. */
SW_PRINTF(4, 5)
static size_t append(char *out, size_t size, size_t length, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = length < size ? vsnprintf(out + length, size - length, format, args)
                             : vsnprintf(NULL, 0, format, args);
    va_end(args);
    return length + (more > 0 ? (size_t)more : 0);
}

size_t sw_schedule_format(const sw_schedule *schedule, char *out, size_t size)
{
    static const sw_schedule always;
    const sw_schedule *s = schedule ? schedule : &always;
    size_t length = 0;
    const char *comma = "";
    switch (s->form) {
    case SW_SCHEDULE_CYCLE:
        for (size_t key = 0; key <= KEY_EVERY; key++) {
            uint64_t number = s->repeat;
            if (key != KEY_REPEAT) {
                memcpy(&number, (const char *)s + keys[key].offset, sizeof number);
            }
            /* Zero is what is meant when nothing is said, except for what makes it a cycle. */
            if (number != 0 || keys[key].offset == offsetof(sw_schedule, active)) {
                length = append(out, size, length, "%s%s=%llu", comma, keys[key].name,
                                (unsigned long long)number);
                comma = ",";
            }
        }
        break;
    case SW_SCHEDULE_EVERY:
        length = append(out, size, length, "every=%llu", (unsigned long long)s->every);
        break;
    case SW_SCHEDULE_STEPS:
        length = append(out, size, length, "steps=");
        for (uint32_t i = 0; i < s->step_count && i < SW_SCHEDULE_STEPS_MAX; i++) {
            length = append(out, size, length, "%s%llu", i ? "," : "",
                            (unsigned long long)s->steps[i]);
        }
        break;
    default:
        length = append(out, size, length, "always");
        break;
    }
    if (s->skip_first != 0) {
        length = append(out, size, length, ",%s=%llu", keys[KEY_SKIP].name,
                        (unsigned long long)s->skip_first);
    }
    return length;
}
