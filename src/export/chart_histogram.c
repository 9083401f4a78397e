/* Histograms: how often values occur. Series that are alike share a plot; others have one each, with their own scale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/chart.h"

#define SHOWN_MOST 9
#define BINS_MOST 200
#define PANEL_HEIGHT 200.0
#define TOGETHER_MOST 4
/* Values that span so much are easier to see on a logarithmic scale. */
#define LOG_FROM 50.0
/* Medians that differ by less lie in one plot. */
#define ALIKE 4.0

/* The values of a series that can be shown, sorted. */
struct set {
    const char *name;
    size_t name_length;
    double *values;
    size_t count;
    unsigned ink;
};

struct plan {
    struct set *sets;
    size_t count;
    size_t left_out;
    bool apart;
    char others[32]; /* name of the last set, where it is what was left */
};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct set *set, double q)
{
    return set->values[(size_t)((double)(set->count - 1) * q + 0.5)];
}

static void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        sw__free(plan->sets[i].values);
    }
    sw__free(plan->sets);
}

/* Adds the values of a series that can be shown. */
static int set_add(struct plan *plan, struct set *set, const sw_chart *chart,
                   const struct sw__series *series)
{
    double *grown = sw__realloc(set->values, set->count + series->count, sizeof *grown);
    if (!grown) {
        return SW_ENOMEM;
    }
    set->values = grown;
    for (size_t i = 0; i < series->count; i++) {
        const double value = series->y[i];
        if (!sw__chart_is_good(value) ||
            (chart->options.scale == SW_SCALE_LOG && !(value > 0))) {
            plan->left_out++;
            continue;
        }
        set->values[set->count++] = value;
    }
    return SW_OK;
}

/* Whether each gets a plot of its own. */
static bool are_apart(const struct plan *plan, enum sw_chart_split split)
{
    if (split != SW_SPLIT_AUTO || plan->count < 2) {
        return split == SW_SPLIT_APART && plan->count > 1;
    }
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->sets[i].count > 0) {
            const double median = quantile(&plan->sets[i], 0.5);
            least = fmin(least, median);
            most = fmax(most, median);
        }
    }
    return plan->count > TOGETHER_MOST || !(least > 0) || most > least * ALIKE;
}

/* Which series are shown by themselves: those whose values sum up to the most. */
static int choose(const sw_chart *chart, bool *shown)
{
    const size_t most = chart->options.top ? chart->options.top : SHOWN_MOST;
    double *weight = sw__alloc_zero(chart->series_count, sizeof *weight);
    size_t *order = NULL;
    if (weight) {
        for (size_t i = 0; i < chart->series_count; i++) {
            const struct sw__series *series = &chart->series[i];
            for (size_t k = 0; k < series->count; k++) {
                weight[i] += sw__chart_is_good(series->y[k]) ? fabs(series->y[k]) : 0;
            }
        }
        order = sw__chart_ranking(weight, chart->series_count);
    }
    for (size_t i = 0; order && i < chart->series_count; i++) {
        shown[order[i]] = i < most;
    }
    const bool good = order != NULL;
    sw__free(weight);
    sw__free(order);
    return good ? SW_OK : SW_ENOMEM;
}

static int plan_fill(struct plan *plan, const sw_chart *chart, const bool *shown)
{
    size_t rest = 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        rest += !shown[i];
    }
    struct set others = {.ink = SW__INK_OTHERS};
    int error = SW_OK;
    for (size_t i = 0; i < chart->series_count && !error; i++) {
        const struct sw__series *series = &chart->series[i];
        if (!shown[i]) {
            error = set_add(plan, &others, chart, series);
            continue;
        }
        struct set *set = &plan->sets[plan->count];
        *set = (struct set){.name = series->name,
                            .name_length = series->name_length,
                            .ink = SW__INK_SERIES +
                                   (unsigned)(plan->count % SW__SERIES_INKS)};
        plan->count++;
        error = set_add(plan, set, chart, series);
    }
    if (rest > 0) {
        snprintf(plan->others, sizeof plan->others, "others (%zu)", rest);
        others.name = plan->others;
        others.name_length = strlen(plan->others);
        plan->sets[plan->count++] = others;
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->sets[i].count > 1) {
            qsort(plan->sets[i].values, plan->sets[i].count, sizeof(double), compare);
        }
    }
    plan->apart = are_apart(plan, chart->options.split);
    return error;
}

static int plan_make(struct plan *plan, const sw_chart *chart)
{
    memset(plan, 0, sizeof *plan);
    bool *shown = sw__alloc_zero(chart->series_count, sizeof *shown);
    plan->sets = sw__alloc_zero(chart->series_count + 1, sizeof *plan->sets);
    int error = shown && plan->sets ? choose(chart, shown) : SW_ENOMEM;
    if (!error) {
        error = plan_fill(plan, chart, shown);
    }
    sw__free(shown);
    return error;
}

static bool plan_is_empty(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->sets[i].count > 0) {
            return false;
        }
    }
    return true;
}

static size_t columns_of(size_t count)
{
    return count <= 1 ? 1 : count <= 4 ? 2 : 3;
}

double sw__histogram_height(const sw_chart *chart)
{
    struct plan plan;
    double height = 400;
    if (plan_make(&plan, chart) == SW_OK && plan.apart) {
        const size_t columns = columns_of(plan.count);
        height = 60 + PANEL_HEIGHT * (double)((plan.count + columns - 1) / columns);
    }
    plan_free(&plan);
    return height;
}

/* --- bins --- */

struct bins {
    double low, width; /* of logarithms where `log` */
    bool log;
    size_t count;
};

static double bin_place(const struct bins *bins, double value)
{
    return bins->log ? log10(value) : value;
}

static double bin_edge(const struct bins *bins, size_t index)
{
    const double at = bins->low + bins->width * (double)index;
    return bins->log ? pow(10, at) : at;
}

/* Freedman and Diaconis: the width follows the middle half of the values, which a few large ones do not move. */
static size_t bins_for(const struct bins *bins, const struct set *set, double range)
{
    const double middle =
        bin_place(bins, quantile(set, 0.75)) - bin_place(bins, quantile(set, 0.25));
    const double count = (double)set->count;
    const double width = 2 * middle / cbrt(count);
    const double least = fmin(sqrt(count) + 1, 20), most = 60;
    const double wanted = width > range / most ? ceil(range / width) : most;
    /* Nothing is known of a shape of which half lies in one place. */
    const double fitting = middle > 0 ? wanted : ceil(log2(count)) * 3 + 1;
    return (size_t)fmin(fmax(fitting, least), most);
}

static struct bins bins_make(const sw_chart *chart, const struct set *sets, size_t count)
{
    struct bins bins = {.count = 1};
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (sets[i].count > 0) {
            low = fmin(low, sets[i].values[0]);
            high = fmax(high, sets[i].values[sets[i].count - 1]);
        }
    }
    bins.log =
        chart->options.scale == SW_SCALE_LOG ||
        (chart->options.scale == SW_SCALE_AUTO && low > 0 && high >= low * LOG_FROM);
    const double size = fmax(fabs(low), fabs(high));
    if (!(high - low >
          fmax(size * 1e-9, SW__CHART_SMALLEST))) { /* one value: a bin around it */
        const double room = size > 1e-290 ? size * 0.02 : 0.2;
        bins.low = bin_place(&bins, bins.log ? low / 1.1 : low - room);
        bins.width = bin_place(&bins, bins.log ? high * 1.1 : high + room) - bins.low;
        return bins;
    }
    bins.low = bin_place(&bins, low);
    const double range = bin_place(&bins, high) - bins.low;
    for (size_t i = 0; i < count && chart->options.bins == 0; i++) {
        const size_t wanted = sets[i].count > 1 ? bins_for(&bins, &sets[i], range) : 1;
        bins.count = wanted > bins.count ? wanted : bins.count;
    }
    bins.count = chart->options.bins ? chart->options.bins : bins.count;
    bins.count = bins.count > BINS_MOST ? BINS_MOST : bins.count;
    bins.width = range / (double)bins.count;
    return bins;
}

static void bins_fill(const struct bins *bins, const struct set *set, size_t *counts)
{
    memset(counts, 0, BINS_MOST * sizeof *counts);
    for (size_t i = 0; i < set->count; i++) {
        const double at = (bin_place(bins, set->values[i]) - bins->low) / bins->width;
        const size_t index = at > 0 ? (size_t)at : 0;
        counts[index < bins->count ? index : bins->count - 1]++;
    }
}

/* --- drawing --- */

/* The outline of all bins, from the ground up and back to it. */
static void draw_set(sw__drawing *drawing, struct sw__box plot, const struct bins *bins,
                     const struct sw__axis *x, const struct sw__axis *y,
                     const size_t *counts, const struct set *set, bool alone)
{
    struct sw__point outline[2 * BINS_MOST + 2];
    const double ground = plot.y + plot.height;
    size_t used = 0;
    for (size_t i = 0; i < bins->count; i++) {
        const double left = plot.x + sw__axis_at(x, bin_edge(bins, i)) * plot.width;
        const double right = plot.x + sw__axis_at(x, bin_edge(bins, i + 1)) * plot.width;
        const double top = ground - sw__axis_at(y, (double)counts[i]) * plot.height;
        if (alone) {
            const double gap = right - left > 5 ? 1 : 0;
            if (counts[i] > 0) { /* what occurs once can still be seen */
                const double seen = fmin(top, ground - 1);
                sw__draw_rectangle(drawing, left, seen, fmax(right - left - gap, 0.5),
                                   ground - seen, set->ink);
            }
            continue;
        }
        if (i == 0) {
            outline[used++] = (struct sw__point){left, ground};
        }
        outline[used++] = (struct sw__point){left, top};
        outline[used++] = (struct sw__point){right, top};
        if (i + 1 == bins->count) {
            outline[used++] = (struct sw__point){right, ground};
        }
    }
    if (!alone) {
        sw__draw_polygon(drawing, outline, used, set->ink, 0.3);
        sw__draw_line(drawing, outline, used, 1.5, set->ink);
    }
}

/* "n 400, median 12.3 ms, p95 15.1 ms" */
static void describe(char *out, size_t size, const struct set *set, const char *unit)
{
    char count[SW__VALUE], median[SW__VALUE], high[SW__VALUE];
    if (set->count == 0) {
        snprintf(out, size, "no values");
        return;
    }
    sw__chart_count(count, set->count);
    sw__chart_value(median, quantile(set, 0.5), unit);
    sw__chart_value(high, quantile(set, 0.95), unit);
    snprintf(out, size, "n %s, median %s, p95 %s", count, median, high);
}

/* One plot of one or more sets; they have at least one value. */
static void draw_plot(sw__drawing *drawing, const sw_chart *chart, struct sw__box box,
                      const struct set *sets, size_t count)
{
    const sw_chart_options *options = &chart->options;
    const struct bins bins = bins_make(chart, sets, count);
    const double low = bin_edge(&bins, 0), high = bin_edge(&bins, bins.count);
    size_t counts[BINS_MOST], most = 0;
    struct sw__axis x, y;
    const size_t ticks = (size_t)fmax(box.width / 80, 4);
    for (size_t i = 0; i < count; i++) {
        bins_fill(&bins, &sets[i], counts);
        for (size_t k = 0; k < bins.count; k++) {
            most = counts[k] > most ? counts[k] : most;
        }
    }
    if (bins.log) {
        sw__axis_log(&x, low, high, options->x_unit);
    } else if (bins.count == 1) { /* of one value: it does not fill the plot */
        sw__axis_linear(&x, low - 4 * bins.width, high + 4 * bins.width, options->x_unit,
                        ticks, false);
    } else {
        sw__axis_linear(&x, low, high, options->x_unit, ticks, false);
    }
    sw__axis_linear(&y, 0, (double)most * 1.05, NULL, (size_t)fmax(box.height / 45, 3),
                    true);
    const struct sw__box plot =
        sw__chart_frame(drawing, box, &x, &y, options->x_label,
                        *options->y_label ? options->y_label : "count");
    for (size_t i = 0; i < count; i++) {
        if (sets[i].count > 0) {
            bins_fill(&bins, &sets[i], counts);
            draw_set(drawing, plot, &bins, &x, &y, counts, &sets[i], count == 1);
        }
    }
}

static void draw_apart(sw__drawing *drawing, const sw_chart *chart, struct sw__box box,
                       const struct plan *plan)
{
    const size_t columns = columns_of(plan->count);
    const size_t rows = (plan->count + columns - 1) / columns;
    const double gap = 14;
    box.y += 6;
    box.height -= 6;
    const double width = (box.width + gap) / (double)columns - gap;
    const double height = box.height / (double)rows;
    for (size_t i = 0; i < plan->count; i++) {
        const struct set *set = &plan->sets[i];
        char words[128];
        struct sw__box panel = {box.x + (double)(i % columns) * (width + gap),
                                box.y + (double)(i / columns) * height, width,
                                height - 8};
        sw__draw_text(
            drawing, panel.x, panel.y + 12,
            (struct sw__type){.size = SW__TEXT_SIZE, .bold = true, .ink = SW__INK_TEXT},
            panel.width, set->name, set->name_length);
        panel.y += 17;
        panel.height -= 17;
        describe(words, sizeof words, set, chart->options.x_unit);
        sw__chart_title(drawing, &panel, NULL, words);
        if (set->count > 0) {
            draw_plot(drawing, chart, panel, set, 1);
        } else {
            sw__chart_nothing(drawing, panel, NULL);
        }
    }
}

static void draw_together(sw__drawing *drawing, const sw_chart *chart, struct sw__box box,
                          const struct plan *plan)
{
    struct sw__legend_entry *entries = sw__alloc_zero(plan->count + 1, sizeof *entries);
    for (size_t i = 0; entries && i < plan->count; i++) {
        entries[i] = (struct sw__legend_entry){
            plan->sets[i].name, plan->sets[i].name_length, plan->sets[i].ink};
    }
    if (entries) {
        sw__chart_legend(drawing, &box, entries, plan->count);
    }
    sw__free(entries);
    draw_plot(drawing, chart, box, plan->sets, plan->count);
}

void sw__histogram_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box)
{
    struct plan plan;
    char remark[256] = "", left_out[96] = "";
    const int error = plan_make(&plan, chart);
    if (plan.left_out > 0) {
        char count[SW__VALUE];
        sw__chart_count(count, plan.left_out);
        snprintf(left_out, sizeof left_out, "%s value%s left out, which cannot be shown",
                 count, plan.left_out == 1 ? "" : "s");
    }
    if (plan.count == 1 && plan.sets[0].count > 0) {
        char words[160];
        describe(words, sizeof words, &plan.sets[0], chart->options.x_unit);
        snprintf(remark, sizeof remark, "%s%s%s", words, *left_out ? "; " : "", left_out);
    } else {
        snprintf(remark, sizeof remark, "%s", left_out);
    }
    sw__chart_title(drawing, &box, chart->options.title, remark);
    if (error || plan_is_empty(&plan)) {
        sw__chart_nothing(drawing, box, chart->options.empty);
    } else if (plan.apart) {
        draw_apart(drawing, chart, box, &plan);
    } else {
        draw_together(drawing, chart, box, &plan);
    }
    plan_free(&plan);
}
