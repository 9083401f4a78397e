/* Named values as the text of a JSON object, which is what the database holds, and back; and times as text. */
#ifndef SW_HISTORY_PAIRS_H
#define SW_HISTORY_PAIRS_H

#include <stepwatch/history.h>
#include <stepwatch/write.h>

#include "analyze/json_scan.h"
#include "base/memory.h"

#define SW__PAIRS_MOST 256

/* Takes an object whose values are texts and numbers; others are left out. What is no object is no pairs. */
sw_history_pairs sw__pairs_scan(struct sw__scan *json, sw__arena *arena);
void sw__pairs_write(sw_writer *writer, sw_history_pairs pairs);

/* Take a value of any kind: NULL and NaN where it is no text, no number. */
const char *sw__scan_text(struct sw__scan *json, sw__arena *arena);
double sw__scan_double(struct sw__scan *json);
int sw__scan_truth(struct sw__scan *json); /* -1: neither */
/* Enters an object, or takes something else and says false. */
bool sw__scan_object(struct sw__scan *json);

/* "2026-01-31T12:00:00.123456Z" and seconds since 1970; NaN and "" where there is no time. */
#define SW__UTC 32
void sw__utc_write(char out[SW__UTC], double seconds);
double sw__utc_read(const char *text);

#endif
