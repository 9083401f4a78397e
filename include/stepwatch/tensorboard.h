/* Event files of TensorBoard: scalars, images and texts, each with a tag and a step. */
#ifndef STEPWATCH_TENSORBOARD_H
#define STEPWATCH_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/analyze.h>
#include <stepwatch/error.h>
#include <stepwatch/findings.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_events sw_events;

/* Begins a file events.out.tfevents.TIME.HOST.PID.N in a folder, which is made where there is none. Every event is in the
 * file when its call returns. Calls may come from any thread. */
SW_API int sw_events_create(sw_events **out, const char *folder, sw_error_info *info);
SW_API const char *sw_events_path(const sw_events *events);
/* The first error of any event; frees it. NULL is fine and gives 0. */
SW_API int sw_events_close(sw_events *events, sw_error_info *info);

/* When an event happened. `wall_s`: seconds since 1970; NaN: now. */
typedef struct sw_event_time {
    int64_t step;
    double wall_s;
} sw_event_time;

/* Tags may hold any bytes; what is not UTF-8 becomes U+FFFD. */
SW_API int sw_events_scalar(sw_events *events, const char *tag, sw_event_time time,
                            double value, sw_error_info *info);
/* `png` is a whole PNG file; SW_EINVAL where it is not. */
SW_API int sw_events_image(sw_events *events, const char *tag, sw_event_time time,
                           const void *png, size_t length, sw_error_info *info);
/* TensorBoard shows it as Markdown. */
SW_API int sw_events_text(sw_events *events, const char *tag, sw_event_time time,
                          const char *text, size_t length, sw_error_info *info);

/* A run: the time of each step and of its phases, samples a second, counters, series of the monitor, its charts, and the
 * report. `findings` may be NULL: nobody looked for any. */
SW_API int sw_export_tensorboard(const char *folder, const sw_summary *summary,
                                 const sw_findings *findings, sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif
