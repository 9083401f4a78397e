/* Lines and stacked areas over a common horizontal axis. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/chart.h"

#define SHOWN_MOST 8

/* The picture of a chart while it is drawn. */
struct picture {
    sw__drawing *drawing;
    const sw_chart *chart;
    struct sw__box plot;
    struct sw__axis x, y;
    unsigned *ink; /* of each series */
    size_t shown;  /* series with an ink of their own */
};

/* --- which series --- */

static double weight_of(const struct sw__series *series, bool sums)
{
    double weight = -1; /* a series without values comes last */
    for (size_t i = 0; i < series->count; i++) {
        if (sw__chart_is_good(series->y[i]) && sw__chart_is_good(series->x[i])) {
            const double size = fabs(series->y[i]);
            weight = sums ? fmax(weight, 0) + size : fmax(weight, size);
        }
    }
    return weight;
}

/* The largest series have colours of their own, in the order in which they came; the others share one. */
static int choose_inks(struct picture *picture, bool sums)
{
    const sw_chart *chart = picture->chart;
    const size_t most = chart->options.top ? chart->options.top : SHOWN_MOST;
    double *weight = sw__alloc_zero(chart->series_count, sizeof *weight);
    size_t *order = NULL;
    picture->ink = sw__alloc_zero(chart->series_count, sizeof *picture->ink);
    for (size_t i = 0; weight && i < chart->series_count; i++) {
        weight[i] = weight_of(&chart->series[i], sums);
    }
    order = weight ? sw__chart_ranking(weight, chart->series_count) : NULL;
    const bool good = order && picture->ink;
    for (size_t i = 0; good && i < chart->series_count; i++) {
        picture->ink[order[i]] = i < most ? SW__INK_SERIES : SW__INK_OTHERS;
    }
    for (size_t i = 0; good && i < chart->series_count; i++) {
        if (picture->ink[i] == SW__INK_SERIES) {
            picture->ink[i] += (unsigned)(picture->shown++ % SW__SERIES_INKS);
        }
    }
    sw__free(weight);
    sw__free(order);
    return good ? SW_OK : SW_ENOMEM;
}

static void draw_legend(const struct picture *picture, struct sw__box *box)
{
    const sw_chart *chart = picture->chart;
    const size_t rest = chart->series_count - picture->shown;
    struct sw__legend_entry *entries =
        sw__alloc_zero(picture->shown + 1, sizeof *entries);
    char others[32];
    size_t used = 0;
    for (size_t i = 0; entries && i < chart->series_count; i++) {
        if (picture->ink[i] != SW__INK_OTHERS) {
            entries[used++] = (struct sw__legend_entry){
                chart->series[i].name, chart->series[i].name_length, picture->ink[i]};
        }
    }
    if (entries && rest > 0) {
        snprintf(others, sizeof others, "others (%zu)", rest);
        entries[used++] =
            (struct sw__legend_entry){others, strlen(others), SW__INK_OTHERS};
    }
    if (entries) {
        sw__chart_legend(picture->drawing, box, entries, used);
    }
    sw__free(entries);
}

/* --- the ranges --- */

struct range {
    double x_low, x_high, y_low, y_high;
    size_t points, left_out;
};

static struct range range_of(const sw_chart *chart)
{
    struct range range = {INFINITY, -INFINITY, INFINITY, -INFINITY, 0, 0};
    for (size_t i = 0; i < chart->series_count; i++) {
        const struct sw__series *series = &chart->series[i];
        for (size_t k = 0; k < series->count; k++) {
            if (!sw__chart_is_good(series->x[k]) || !sw__chart_is_good(series->y[k])) {
                range.left_out++;
                continue;
            }
            range.points++;
            range.x_low = fmin(range.x_low, series->x[k]);
            range.x_high = fmax(range.x_high, series->x[k]);
            range.y_low = fmin(range.y_low, series->y[k]);
            range.y_high = fmax(range.y_high, series->y[k]);
        }
    }
    return range;
}

/* From 0 where that leaves enough to see, else a little more than the values take. */
static void widen(double *low, double *high, const char *unit)
{
    const double span = *high - *low;
    if (*low >= 0 && *high <= 100 &&
        strcmp(unit, "%") == 0) { /* shares have their ends */
        *low = 0;
        *high = 100;
    } else if (*low >= 0 && (span >= *high * 0.35 || span == 0)) {
        *low = 0;
        *high *= 1.05;
    } else if (*high <= 0 && span >= -*low * 0.35) {
        *high = 0;
        *low *= 1.05;
    } else {
        *low -= span * 0.08;
        *high += span * 0.08;
    }
}

static void frame(struct picture *picture, struct sw__box box, const struct range *range)
{
    const sw_chart_options *options = &picture->chart->options;
    sw__axis_linear(&picture->x, range->x_low, range->x_high, options->x_unit,
                    (size_t)fmax(box.width / 80, 4), false);
    sw__axis_linear(&picture->y, range->y_low, range->y_high, options->y_unit,
                    (size_t)fmax(box.height / 45, 3), false);
    picture->plot = sw__chart_frame(picture->drawing, box, &picture->x, &picture->y,
                                    options->x_label, options->y_label);
}

static struct sw__point place(const struct picture *picture, double x, double y)
{
    const struct sw__box *plot = &picture->plot;
    return (struct sw__point){plot->x + sw__axis_at(&picture->x, x) * plot->width,
                              plot->y + plot->height -
                                  sw__axis_at(&picture->y, y) * plot->height};
}

/* --- lines --- */

/* A stretch of a line without gaps. */
struct stretch {
    struct sw__point *points;
    size_t count;
};

/* Of many points in one column of pixels four are kept: the first, the last, the highest and the lowest. The line looks the
 * same, whatever its length. */
static size_t thin(struct sw__point *points, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count;) {
        const double column = floor(points[i].x * 2);
        size_t end = i, high = i, low = i;
        for (; end < count && floor(points[end].x * 2) == column; end++) {
            high = points[end].y < points[high].y ? end : high;
            low = points[end].y > points[low].y ? end : low;
        }
        const size_t first = high < low ? high : low, second = high < low ? low : high;
        const size_t wanted[] = {i, first, second, end - 1};
        size_t before = SIZE_MAX;
        for (size_t k = 0; k < 4; k++) {
            if (wanted[k] != before) { /* never ahead of what is read */
                points[used++] = points[wanted[k]];
                before = wanted[k];
            }
        }
        i = end;
    }
    return used;
}

static void draw_stretch(const struct picture *picture, struct stretch stretch,
                         unsigned ink)
{
    const bool rest = ink == SW__INK_OTHERS;
    if (stretch.count == 0) {
        return;
    }
    if (stretch.count == 1) {
        sw__draw_line(picture->drawing, stretch.points, 1, 5, ink);
        return;
    }
    const size_t count = thin(stretch.points, stretch.count);
    sw__draw_line(picture->drawing, stretch.points, count, rest ? 1 : 1.75, ink);
}

static int draw_series(const struct picture *picture, const struct sw__series *series,
                       unsigned ink)
{
    struct stretch stretch = {.points =
                                  sw__alloc_zero(series->count, sizeof *stretch.points)};
    if (!stretch.points) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < series->count; i++) {
        if (sw__chart_is_good(series->x[i]) && sw__chart_is_good(series->y[i])) {
            stretch.points[stretch.count++] = place(picture, series->x[i], series->y[i]);
            continue;
        }
        draw_stretch(picture, stretch, ink);
        stretch.count = 0;
    }
    draw_stretch(picture, stretch, ink);
    sw__free(stretch.points);
    return SW_OK;
}

static void remark_of(char *out, size_t size, const struct range *range)
{
    char count[SW__VALUE];
    out[0] = '\0';
    if (range->left_out > 0) {
        sw__chart_count(count, range->left_out);
        snprintf(out, size, "%s value%s not known, where lines are interrupted", count,
                 range->left_out == 1 ? "" : "s");
    }
}

void sw__lines_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box)
{
    struct picture picture = {.drawing = drawing, .chart = chart};
    struct range range = range_of(chart);
    char remark[128];
    remark_of(remark, sizeof remark, &range);
    sw__chart_title(drawing, &box, chart->options.title, remark);
    if (range.points == 0 || choose_inks(&picture, false)) {
        sw__chart_nothing(drawing, box, chart->options.empty);
        sw__free(picture.ink);
        return;
    }
    widen(&range.y_low, &range.y_high, chart->options.y_unit);
    draw_legend(&picture, &box);
    frame(&picture, box, &range);
    /* Grey ones first, so that they lie below. */
    for (int shown = 0; shown < 2; shown++) {
        for (size_t i = 0; i < chart->series_count; i++) {
            if ((picture.ink[i] != SW__INK_OTHERS) == (bool)shown) {
                (void)draw_series(&picture, &chart->series[i], picture.ink[i]);
            }
        }
    }
    sw__free(picture.ink);
}

/* --- areas --- */

#define COLUMNS_MOST 1000

/* Means of the values in each of so many columns, NaN where there are none. */
static void column_means(const struct picture *picture, const struct sw__series *series,
                         double *mean, size_t *count, size_t columns)
{
    memset(count, 0, columns * sizeof *count);
    for (size_t i = 0; i < columns; i++) {
        mean[i] = 0;
    }
    for (size_t i = 0; i < series->count; i++) {
        if (!sw__chart_is_good(series->x[i]) || !sw__chart_is_good(series->y[i])) {
            continue;
        }
        const double at = sw__axis_at(&picture->x, series->x[i]) * (double)columns;
        const size_t column = (size_t)fmin(at, (double)columns - 1);
        count[column]++;
        mean[column] += (fmax(series->y[i], 0) - mean[column]) / (double)count[column];
    }
}

/* Sums of the series at each place; the highest of them is returned. */
static double stack_heights(const sw_chart *chart)
{
    double most = 0;
    size_t count = 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        count = chart->series[i].count > count ? chart->series[i].count : count;
    }
    for (size_t k = 0; k < count; k++) {
        double sum = 0;
        for (size_t i = 0; i < chart->series_count; i++) {
            const struct sw__series *series = &chart->series[i];
            const bool good = k < series->count && sw__chart_is_good(series->y[k]);
            sum += good ? fmax(series->y[k], 0) : 0;
        }
        most = fmax(most, sum);
    }
    return fmin(most, SW__CHART_LARGEST);
}

static void draw_layer(const struct picture *picture, unsigned ink, double *base,
                       const double *mean, const size_t *count, size_t columns,
                       struct sw__point *points)
{
    const struct sw__box *plot = &picture->plot;
    size_t used = 0;
    double last = 0;
    for (size_t i = 0; i < columns; i++) { /* over the top */
        last = count[i] > 0 ? mean[i] : last;
        const double left = plot->x + plot->width * (double)i / (double)columns;
        const double right = plot->x + plot->width * (double)(i + 1) / (double)columns;
        const double y = place(picture, picture->x.low, base[i] + last).y;
        points[used++] = (struct sw__point){left, y};
        points[used++] = (struct sw__point){right, y};
    }
    last = 0;
    for (size_t i = columns; i > 0; i--) { /* and back along what it stands on */
        const double left = plot->x + plot->width * (double)(i - 1) / (double)columns;
        const double right = plot->x + plot->width * (double)i / (double)columns;
        const double y = place(picture, picture->x.low, base[i - 1]).y;
        points[used++] = (struct sw__point){right, y};
        points[used++] = (struct sw__point){left, y};
    }
    for (size_t i = 0; i < columns; i++) {
        last = count[i] > 0 ? mean[i] : last;
        base[i] += last;
    }
    sw__draw_polygon(picture->drawing, points, used, ink, 0.85);
}

static void draw_layers(const struct picture *picture)
{
    const sw_chart *chart = picture->chart;
    size_t longest = 1;
    for (size_t i = 0; i < chart->series_count; i++) {
        longest = chart->series[i].count > longest ? chart->series[i].count : longest;
    }
    const size_t room = (size_t)fmin(picture->plot.width, COLUMNS_MOST);
    const size_t columns = longest < room ? longest : room;
    double *base = sw__alloc_zero(2 * columns, sizeof *base);
    size_t *count = sw__alloc_zero(columns, sizeof *count);
    struct sw__point *points = sw__alloc_zero(4 * columns, sizeof *points);
    for (int shown = 1; base && count && points && shown >= 0; shown--) {
        for (size_t i = 0; i < chart->series_count; i++) {
            if ((picture->ink[i] != SW__INK_OTHERS) == (bool)shown) {
                column_means(picture, &chart->series[i], base + columns, count, columns);
                draw_layer(picture, picture->ink[i], base, base + columns, count, columns,
                           points);
            }
        }
    }
    sw__free(base);
    sw__free(count);
    sw__free(points);
}

void sw__areas_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box)
{
    struct picture picture = {.drawing = drawing, .chart = chart};
    struct range range = range_of(chart);
    char remark[128] = "", count[SW__VALUE];
    if (range.left_out > 0) {
        sw__chart_count(count, range.left_out);
        snprintf(remark, sizeof remark, "%s value%s left out, which cannot be shown",
                 count, range.left_out == 1 ? "" : "s");
    }
    sw__chart_title(drawing, &box, chart->options.title, remark);
    if (range.points == 0 || choose_inks(&picture, true)) {
        sw__chart_nothing(drawing, box, chart->options.empty);
        sw__free(picture.ink);
        return;
    }
    range.y_low = 0;
    range.y_high = stack_heights(chart) * 1.05;
    range.y_high = range.y_high > 0 ? range.y_high : 1;
    draw_legend(&picture, &box);
    frame(&picture, box, &range);
    draw_layers(&picture);
    sw__free(picture.ink);
}
