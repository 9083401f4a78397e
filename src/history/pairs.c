#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "history/pairs.h"

#define TEXT_MOST 8192

const char *sw__scan_text(struct sw__scan *json, sw__arena *arena)
{
    char text[TEXT_MOST];
    if (sw__scan_peek(json) != SW__SCAN_STRING) {
        (void)sw__scan_skip(json);
        return NULL;
    }
    if (sw__scan_string(json, text, sizeof text) < 0) {
        return NULL;
    }
    return sw__arena_copy(arena, text, strlen(text));
}

double sw__scan_double(struct sw__scan *json)
{
    double value = NAN;
    if (sw__scan_peek(json) != SW__SCAN_NUMBER) {
        (void)sw__scan_skip(json);
    } else if (!sw__scan_number(json, &value)) {
        value = NAN;
    }
    return value;
}

int sw__scan_truth(struct sw__scan *json)
{
    int truth = -1;
    if (sw__scan_peek(json) == SW__SCAN_BOOL) {
        truth = *json->at == 't';
    }
    return sw__scan_skip(json) ? truth : -1;
}

bool sw__scan_object(struct sw__scan *json)
{
    if (sw__scan_peek(json) != SW__SCAN_OBJECT) {
        (void)sw__scan_skip(json);
        return false;
    }
    return sw__scan_enter(json, SW__SCAN_OBJECT);
}

sw_history_pairs sw__pairs_scan(struct sw__scan *json, sw__arena *arena)
{
    sw_history_pair found[SW__PAIRS_MOST];
    sw_history_pairs pairs = {0};
    char key[256];
    bool first = true;
    if (!sw__scan_object(json)) {
        return pairs;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const enum sw__scan_kind kind = sw__scan_peek(json);
        sw_history_pair pair = {.number = NAN};
        if (kind == SW__SCAN_STRING) {
            pair.text = sw__scan_text(json, arena);
        } else {
            pair.number = sw__scan_double(json);
        }
        if ((pair.text || !isnan(pair.number)) && pairs.count < SW__PAIRS_MOST) {
            pair.key = sw__arena_copy(arena, key, strlen(key));
            found[pairs.count] = pair;
            pairs.count += pair.key != NULL;
        }
    }
    /* An empty object is known to be empty: that is not NULL. */
    sw_history_pair *kept = json->bad
                                ? NULL
                                : sw__arena_take(arena, (pairs.count + 1) * sizeof *kept,
                                                 _Alignof(sw_history_pair));
    if (!kept) {
        return (sw_history_pairs){0};
    }
    memcpy(kept, found, pairs.count * sizeof *kept);
    pairs.pair = kept;
    return pairs;
}

void sw__pairs_write(sw_writer *writer, sw_history_pairs pairs)
{
    sw_json_object_begin(writer);
    for (size_t i = 0; i < pairs.count; i++) {
        sw_json_key(writer, pairs.pair[i].key);
        if (pairs.pair[i].text) {
            sw_json_string(writer, pairs.pair[i].text);
        } else {
            sw_json_double(writer, pairs.pair[i].number);
        }
    }
    sw_json_object_end(writer);
}

void sw__utc_write(char out[SW__UTC], double seconds)
{
    struct tm parts;
    out[0] = '\0';
    if (!(seconds >= 0 && seconds < 253402300800.0)) { /* the year 10000 */
        return;
    }
    const long long microseconds = llround(seconds * 1e6);
    const time_t whole = (time_t)(microseconds / 1000000);
    gmtime_r(&whole, &parts);
    const size_t used = strftime(out, SW__UTC, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + used, SW__UTC - used, ".%06lldZ", microseconds % 1000000);
}

/* The digits of a number; false where there is none. */
static bool take_number(const char **text, int most, char end, int *out)
{
    int value = 0;
    int count = 0;
    for (; **text >= '0' && **text <= '9' && count < most; (*text)++, count++) {
        value = value * 10 + (**text - '0');
    }
    *out = value;
    if (count == 0 || (end && **text != end)) {
        return false;
    }
    *text += end != '\0';
    return true;
}

double sw__utc_read(const char *text)
{
    struct tm parts = {0};
    if (!text || !take_number(&text, 4, '-', &parts.tm_year) ||
        !take_number(&text, 2, '-', &parts.tm_mon) ||
        !take_number(&text, 2, 'T', &parts.tm_mday) ||
        !take_number(&text, 2, ':', &parts.tm_hour) ||
        !take_number(&text, 2, ':', &parts.tm_min) ||
        !take_number(&text, 2, '\0', &parts.tm_sec)) {
        return NAN;
    }
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    double fraction = 0;
    if (*text == '.') {
        double unit = 0.1;
        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10) {
            fraction += unit * (*text - '0');
        }
    }
    return *text == 'Z' ? (double)timegm(&parts) + fraction : NAN;
}
