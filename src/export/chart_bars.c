/* Horizontal bars with their values, alone or in groups. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/chart.h"

#define SHOWN_MOST 20
#define BAR 18.0
#define GROUP_BAR 13.0
#define ROW_GAP 9.0

static bool is_grouped(const sw_chart *chart)
{
    return chart->series_count > 1 ||
           (chart->series_count == 1 && chart->series[0].name_length > 0);
}

static size_t shown_of(const sw_chart *chart)
{
    const size_t most = chart->options.top ? chart->options.top : SHOWN_MOST;
    return chart->bar_count < most ? chart->bar_count : most;
}

static double row_height(const sw_chart *chart)
{
    return is_grouped(chart) ? GROUP_BAR * (double)chart->series_count + ROW_GAP
                             : BAR + ROW_GAP;
}

double sw__bars_height(const sw_chart *chart)
{
    const bool more = chart->bar_count > shown_of(chart);
    const size_t rows = shown_of(chart) + (more && chart->options.sum_others);
    double height = 2 * 16 + row_height(chart) * (double)rows + 4;
    height += *chart->options.title ? 24 : 0;
    height += *chart->options.x_label ? 20 : 0;
    height += more && !chart->options.sum_others ? 17 : 0;
    height += is_grouped(chart) ? 24 : 0;
    return height;
}

static double value_of(const struct sw__bars *bars, size_t group)
{
    return group < bars->room ? bars->values[group] : NAN;
}

/* The rows in the order in which they are shown; the last one may stand for the others. */
struct rows {
    const struct sw__bars **row;
    size_t count;
    struct sw__bars others;
    double *sums;
    char name[64];
    size_t left; /* rows that are not shown */
};

static void rows_free(struct rows *rows)
{
    sw__free(rows->row);
    sw__free(rows->sums);
}

/* Largest first; groups stay as they came. */
static size_t *order_of(const sw_chart *chart)
{
    double *weight = sw__alloc_zero(chart->bar_count, sizeof *weight);
    if (!weight) {
        return NULL;
    }
    for (size_t i = 0; i < chart->bar_count; i++) {
        const double value = value_of(&chart->bars[i], 0);
        const bool kept = chart->options.in_order || is_grouped(chart);
        weight[i] = kept ? 0 : sw__chart_is_good(value) ? value : -INFINITY;
    }
    size_t *order = sw__chart_ranking(weight, chart->bar_count);
    sw__free(weight);
    return order;
}

static int rows_make(struct rows *rows, const sw_chart *chart)
{
    const size_t shown = shown_of(chart);
    size_t *order = order_of(chart);
    *rows = (struct rows){.left = chart->bar_count - shown};
    rows->row = sw__alloc_zero(shown + 1, sizeof *rows->row);
    rows->sums = sw__alloc_zero(chart->series_count, sizeof *rows->sums);
    if (!order || !rows->row || !rows->sums) {
        sw__free(order);
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < chart->bar_count; i++) {
        const struct sw__bars *bars = &chart->bars[order[i]];
        if (i < shown) {
            rows->row[rows->count++] = bars;
            continue;
        }
        for (size_t group = 0; group < chart->series_count; group++) {
            const double value = value_of(bars, group);
            rows->sums[group] += sw__chart_is_good(value) ? value : 0;
        }
    }
    sw__free(order);
    if (rows->left > 0 && chart->options.sum_others) {
        snprintf(rows->name, sizeof rows->name, "others (%zu)", rows->left);
        rows->others = (struct sw__bars){.name = rows->name,
                                         .name_length = strlen(rows->name),
                                         .values = rows->sums,
                                         .room = chart->series_count};
        rows->row[rows->count++] = &rows->others;
    }
    return SW_OK;
}

/* --- drawing --- */

struct picture {
    sw__drawing *drawing;
    const sw_chart *chart;
    struct rows rows;
    struct sw__box plot; /* where bars may be */
    struct sw__axis axis;
    double bar; /* height of one */
};

static const struct sw__type label = {
    .size = SW__TEXT_SIZE, .ink = SW__INK_TEXT, .anchor = SW__END};
static const struct sw__type number = {.size = 11, .ink = SW__INK_DIM};

/* The range of values, 0 in it, and the width of the widest number. False: there is none. */
static bool measure(const struct picture *picture, double *low, double *high,
                    double *widest)
{
    bool any = false;
    *low = *high = *widest = 0;
    for (size_t i = 0; i < picture->rows.count; i++) {
        for (size_t group = 0; group < picture->chart->series_count; group++) {
            const double value = value_of(picture->rows.row[i], group);
            char text[SW__VALUE];
            sw__chart_value(text, value, picture->chart->options.x_unit);
            *widest = fmax(*widest, sw__draw_measure(number, text, strlen(text)));
            if (sw__chart_is_good(value)) {
                any = true;
                *low = fmin(*low, value);
                *high = fmax(*high, value);
            }
        }
    }
    return any;
}

static void draw_bar(const struct picture *picture, double y, double value, unsigned ink)
{
    const struct sw__box *plot = &picture->plot;
    char text[SW__VALUE];
    const double zero = plot->x + sw__axis_at(&picture->axis, 0) * plot->width;
    double end = zero;
    sw__chart_value(text, value, picture->chart->options.x_unit);
    if (sw__chart_is_good(value)) {
        end = plot->x + sw__axis_at(&picture->axis, value) * plot->width;
        const double left = fmin(zero, end), width = fmax(fabs(end - zero), 1);
        if (value != 0) { /* a trace of the smallest, but none of nothing */
            sw__draw_rectangle(picture->drawing, left, y, width, picture->bar - 2, ink);
        }
    }
    sw__draw_text(picture->drawing, fmax(zero, end) + 6, y + picture->bar / 2 + 3, number,
                  0, text, strlen(text));
}

static void draw_row(const struct picture *picture, const struct sw__bars *row, double y,
                     double label_width)
{
    const size_t groups = picture->chart->series_count;
    const bool rest = row == &picture->rows.others;
    const double middle = y + picture->bar * (double)groups / 2;
    sw__draw_text(picture->drawing, picture->plot.x - 8, middle + 3, label, label_width,
                  row->name, row->name_length);
    for (size_t group = 0; group < groups; group++) {
        const double value = value_of(row, group);
        const unsigned ink = SW__INK_SERIES + (unsigned)(group % SW__SERIES_INKS);
        if (groups > 1 && isnan(value)) {
            continue; /* the group does not have it */
        }
        draw_bar(picture, y + picture->bar * (double)group, value,
                 rest && groups == 1 ? SW__INK_OTHERS : ink);
    }
}

static void draw_legend(const struct picture *picture, struct sw__box *box)
{
    struct sw__legend_entry entries[SW__CHART_GROUPS];
    for (size_t i = 0; i < picture->chart->series_count; i++) {
        entries[i] = (struct sw__legend_entry){
            picture->chart->series[i].name, picture->chart->series[i].name_length,
            SW__INK_SERIES + (unsigned)(i % SW__SERIES_INKS)};
    }
    sw__chart_legend(picture->drawing, box, entries, picture->chart->series_count);
}

static void draw_rows(struct picture *picture, struct sw__box box, double low,
                      double high, double widest)
{
    const sw_chart_options *options = &picture->chart->options;
    double label_width = 20;
    for (size_t i = 0; i < picture->rows.count; i++) {
        const struct sw__bars *row = picture->rows.row[i];
        label_width =
            fmax(label_width, sw__draw_measure(label, row->name, row->name_length));
    }
    label_width = fmin(label_width, box.width * 0.36);
    const double left = label_width + 10, right = widest + 12;
    const double bottom = *options->x_label ? 20 : 4;
    picture->plot =
        (struct sw__box){box.x + left, box.y, fmax(20, box.width - left - right),
                         fmax(20, box.height - bottom)};
    const double room = picture->plot.height / (double)picture->rows.count;
    const double groups = (double)picture->chart->series_count;
    const double usual = is_grouped(picture->chart) ? GROUP_BAR : BAR;
    picture->bar = fmax(3, fmin(usual, (room - 4) / groups));
    sw__axis_linear(&picture->axis, low, high, options->x_unit, 4, false);
    const double zero =
        floor(picture->plot.x + sw__axis_at(&picture->axis, 0) * picture->plot.width);
    const double pitch = fmin(room, picture->bar * groups + ROW_GAP);
    for (size_t i = 0; i < picture->rows.count; i++) {
        draw_row(picture, picture->rows.row[i], box.y + pitch * (double)i + 2,
                 label_width);
    }
    const double ground = box.y + pitch * (double)picture->rows.count;
    sw__draw_segment(picture->drawing, zero - 0.5, box.y, zero - 0.5, ground, 1,
                     SW__INK_DIM);
    sw__draw_text(picture->drawing, picture->plot.x, ground + 16,
                  (struct sw__type){.size = SW__TEXT_SIZE, .ink = SW__INK_DIM},
                  box.width - left, options->x_label, strlen(options->x_label));
}

void sw__bars_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box)
{
    struct picture picture = {.drawing = drawing, .chart = chart};
    double low, high, widest;
    char remark[96] = "";
    const int error = rows_make(&picture.rows, chart);
    if (picture.rows.left > 0 && !chart->options.sum_others) {
        char count[SW__VALUE];
        sw__chart_count(count, picture.rows.left);
        snprintf(remark, sizeof remark, "%s more %s not shown", count,
                 picture.rows.left == 1 ? "is" : "are");
    }
    sw__chart_title(drawing, &box, chart->options.title, remark);
    if (error || !measure(&picture, &low, &high, &widest)) {
        sw__chart_nothing(drawing, box, chart->options.empty);
    } else {
        draw_legend(&picture, &box);
        draw_rows(&picture, box, low, high > low ? high : low + 1, widest);
    }
    rows_free(&picture.rows);
}
