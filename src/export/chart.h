/* What the files of charts share: series, axes, and the parts that a plot is put together from. */
#ifndef SW_EXPORT_CHART_H
#define SW_EXPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/chart.h>

#include "export/draw.h"

/* Beyond it nothing can be computed with. */
#define SW__CHART_LARGEST 1e300
/* Nor with differences below it, which have few digits or none. */
#define SW__CHART_SMALLEST 1e-300
#define SW__CHART_GROUPS 64

struct sw__series {
    char *name;
    size_t name_length;
    double *x; /* of lines and areas; else NULL */
    double *y; /* values */
    size_t count;
};

/* A row of bars: one value a group, NaN where there is none. */
struct sw__bars {
    char *name;
    size_t name_length;
    double *values;
    size_t room; /* groups that `values` holds */
};

struct sw_chart {
    sw_chart_options options;  /* its texts are our own */
    struct sw__series *series; /* of bars: the groups, without values */
    size_t series_count;
    struct sw__bars *bars;
    size_t bar_count, bar_room;
};

bool sw__chart_is_good(double value); /* it can be shown */

struct sw__box {
    double x, y, width, height;
};

/* --- numbers and axes --- */

/* Room for a number with its unit. */
#define SW__VALUE 48
/* A value as people read it, with its unit. */
void sw__chart_value(char out[SW__VALUE], double value, const char *unit);
/* A whole number of things. */
void sw__chart_count(char out[SW__VALUE], size_t count);

#define SW__TICKS 16
struct sw__axis {
    double low, high; /* high > low */
    bool log;
    size_t count;
    double tick[SW__TICKS];
    char text[SW__TICKS][SW__VALUE];
    char unit[32]; /* that the texts are in; "" : none, or they have it themselves */
};

/* An axis from `low` to `high` with at most `most` ticks (2…SW__TICKS). `whole`: no fractions. */
void sw__axis_linear(struct sw__axis *axis, double low, double high, const char *unit,
                     size_t most, bool whole);
void sw__axis_log(struct sw__axis *axis, double low, double high, const char *unit);
/* Where a value lies: 0 at the low end, 1 at the high one; never outside. */
double sw__axis_at(const struct sw__axis *axis, double value);

/* --- parts of a plot --- */

#define SW__TEXT_SIZE 12.0

/* Title, and a remark below it. Takes what it needs from the top of the box. `title` may be NULL. */
void sw__chart_title(sw__drawing *drawing, struct sw__box *box, const char *title,
                     const char *remark);

struct sw__legend_entry {
    const char *name;
    size_t name_length;
    unsigned ink;
};
/* Likewise; nothing for a single entry without a name. */
void sw__chart_legend(sw__drawing *drawing, struct sw__box *box,
                      const struct sw__legend_entry *entries, size_t count);

/* Draws axes, ticks and labels into the box and gives what is left for the plot itself. */
struct sw__box sw__chart_frame(sw__drawing *drawing, struct sw__box box,
                               const struct sw__axis *x, const struct sw__axis *y,
                               const char *x_label, const char *y_label);
/* A box that says that there is nothing, and why. */
void sw__chart_nothing(sw__drawing *drawing, struct sw__box box, const char *why);

/* --- kinds --- */

/* The height that suits a width. */
double sw__histogram_height(const sw_chart *chart);
double sw__bars_height(const sw_chart *chart);

void sw__histogram_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box);
void sw__lines_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box);
void sw__areas_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box);
void sw__bars_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box);

/* Numbers of the series in the order of `weight`, heaviest first, in an array that the caller frees; NULL: out of memory. */
size_t *sw__chart_ranking(const double *weight, size_t count);

#endif
