/* The verdict: one sentence that says what to change and what that gains, or that there is nothing to change. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/report_parts.h"

/* Longer advice has its place below the verdict only. */
#define ADVICE_MOST 110

/* "1.55", whatever the locale of the program. */
static void ratio_text(char out[16], double ratio)
{
    snprintf(out, 16, ratio < 10 ? "%.2f" : ratio < 1000 ? "%.0f" : "%.3g", ratio);
    for (char *c = out; *c; c++) {
        *c = *c == ',' ? '.' : *c;
    }
}

void sw__gain_text(char out[SW__GAIN], const sw_finding *finding)
{
    char speedup[16];
    char low[16];
    char high[16];
    out[0] = '\0';
    if (!finding->predicted || !isfinite(finding->speedup)) {
        return;
    }
    ratio_text(speedup, finding->speedup);
    if (isfinite(finding->low) && isfinite(finding->high)) {
        ratio_text(low, finding->low);
        ratio_text(high, finding->high);
        snprintf(out, SW__GAIN, "%s× faster (%s to %s)", speedup, low, high);
    } else {
        snprintf(out, SW__GAIN, "%s× faster", speedup);
    }
}

/* Whether a sentence begins with an ordinary word, which loses its capital within another sentence. */
static bool begins_with_word(const char *text)
{
    size_t length = 1;
    while (islower((unsigned char)text[length])) {
        length++;
    }
    return isupper((unsigned char)text[0]) &&
           (text[length] == ' ' || text[length] == ',');
}

/* A sentence as part of another one. */
static void put_clause(sw_writer *w, const char *text)
{
    size_t length = strlen(text);
    length -= length > 0 && text[length - 1] == '.';
    if (length > 0 && begins_with_word(text)) {
        const char first = (char)tolower((unsigned char)text[0]);
        sw_write_bytes(w, &first, 1);
        text++;
        length--;
    }
    sw_write_bytes(w, text, length);
}

static void put_first(sw_writer *w, const sw_finding *finding)
{
    char gain[SW__GAIN];
    sw__gain_text(gain, finding);
    sw_write_text(w, finding->title ? finding->title : "?");
    const char *advice = finding->advice_count ? finding->advice[0] : NULL;
    const bool told = advice && strlen(advice) <= ADVICE_MOST;
    if (told) {
        sw_write_text(w, "; ");
        put_clause(w, advice);
    }
    if (*gain) { /* one arrow is enough */
        sw_write_text(w, told && strstr(advice, "→") ? ": " : " → ");
        sw_write_text(w, gain);
    }
}

size_t sw__checked_count(const sw_findings *findings, const char **first_why)
{
    size_t checked = 0;
    *first_why = NULL;
    for (unsigned kind = 0; kind < SW_FINDING_KINDS; kind++) {
        const char *why;
        if (sw_findings_checked(findings, (enum sw_finding_kind)kind, &why)) {
            checked++;
        } else if (!*first_why) {
            *first_why = why;
        }
    }
    return checked;
}

enum sw__verdict sw__put_verdict(sw_writer *w, const sw_summary *summary,
                                 const sw_findings *findings)
{
    size_t count = 0;
    const sw_finding *list = findings ? sw_findings_get(findings, &count) : NULL;
    const char *bound = findings ? sw_findings_bound(findings) : NULL;
    const char *why = NULL;
    if (count > 0) {
        put_first(w, &list[0]);
        return SW__VERDICT_CHANGE;
    }
    if (findings && sw__checked_count(findings, &why) > 0) {
        sw_write_text(w, "nothing to fix");
        if (bound) {
            sw_write_text(w, ": ");
            sw_write_text(w, bound);
        }
        return SW__VERDICT_GOOD;
    }
    if (bound) {
        sw_write_text(w, bound);
    } else if (!sw_summary_get_steps(summary)) {
        sw_write_text(
            w, "no steps were recorded, so there is nothing to judge a training by");
    } else {
        sw_write_text(w, "nothing can be said yet: ");
        sw_write_text(w, why ? why : "nobody looked for findings");
    }
    return SW__VERDICT_UNKNOWN;
}
