/* Charts: histograms, lines, areas and bars, alone or in a grid, as SVG or PNG.
 *
 * A chart is a title, labels and series. It is laid out once and then written in either form, so that both show the same.
 * Values that are not finite, or beyond ±1e300, are left out, and the chart says how many. The bytes that are written
 * depend on nothing but what was put in. Names may hold any bytes. */
#ifndef STEPWATCH_CHART_H
#define STEPWATCH_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>
#include <stepwatch/write.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_chart sw_chart;

enum sw_chart_kind {
    SW_CHART_HISTOGRAM, /* how often values occur */
    SW_CHART_LINES,
    SW_CHART_AREAS, /* stacked on each other; all series have the same x */
    SW_CHART_BARS   /* horizontal, with their values */
};
enum sw_chart_scale { SW_SCALE_AUTO, SW_SCALE_LINEAR, SW_SCALE_LOG };
/* Several series of a histogram: in one plot or in one each. */
enum sw_chart_split { SW_SPLIT_AUTO, SW_SPLIT_TOGETHER, SW_SPLIT_APART };

/* All zero but the kind is fine. Texts are copied. Units: "s" (also "ms", "us", "ns") is shown as s, ms, µs, min as fits;
 * "B" as KiB, MiB, GiB; any other text is shown as it is. */
typedef struct sw_chart_options {
    enum sw_chart_kind kind;
    const char *title, *x_label, *y_label;
    const char *
        x_unit; /* of what lies along the horizontal axis: of a histogram and of bars that of the values */
    const char *y_unit;
    enum sw_chart_scale
        scale; /* of a histogram's values; automatic: logarithmic where they span decades */
    enum sw_chart_split split;
    size_t bins; /* of a histogram; 0: as many as suit */
    size_t
        top; /* series or bars that are shown by themselves; 0: 9 of a histogram, 8 lines or areas, 20 bars */
    bool
        sum_others; /* bars beyond them become one with their sum; otherwise they are only counted */
    bool in_order;     /* bars as they were added, not largest first; groups always are */
    const char *empty; /* a sentence for a chart without data: why there is none */
    double width, height; /* 0: as suits; in px of SVG. PNG has twice as many pixels */
} sw_chart_options;

SW_API int sw_chart_create(sw_chart **out, const sw_chart_options *options,
                           sw_error_info *info);
SW_API void sw_chart_free(sw_chart *chart); /* NULL is fine */

/* Series; values are copied. SW_EINVAL where the chart is of another kind. A name of length 0 is no name: fine where there
 * is one series. */
SW_API int sw_chart_add_values(sw_chart *chart, const char *name, size_t name_length,
                               const double *values, size_t count);
/* Lines are interrupted where a value is not finite. */
SW_API int sw_chart_add_line(sw_chart *chart, const char *name, size_t name_length,
                             const double *x, const double *y, size_t count);
/* A bar; bars of one name are added one after the other. `group` NULL: there are none. At most 64 groups (SW_ELIMIT). */
SW_API int sw_chart_add_bar(sw_chart *chart, const char *name, size_t name_length,
                            const char *group, size_t group_length, double value);

enum sw_chart_format {
    SW_CHART_SVG, /* a file of its own */
    SW_CHART_SVG_INLINE, /* for a page, whose variables --text, --dim, --line and --s0…--s9 give the colours */
    SW_CHART_PNG
};

/* Charts side by side, from left to right and from top to bottom. */
typedef struct sw_chart_page {
    size_t columns;    /* 0: 1 for one chart, else 2 */
    const char *title; /* above all of them; NULL: none */
} sw_chart_page;

/* Writes them as one image. `page` may be NULL. Errors of writing stick to the writer. */
SW_API int sw_charts_write(sw_writer *writer, enum sw_chart_format format,
                           const sw_chart *const *charts, size_t count,
                           const sw_chart_page *page, sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif
