/* Charts: what they hold, and how a page of them is laid out. */
#include "export/chart.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

#define WIDTH 860.0
#define CELL_WIDTH 640.0
#define HEIGHT 400.0
#define SIZE_LEAST 160.0
#define SIZE_MOST 8000.0
#define MARGIN 16.0
#define PAGE_CHARTS 256

bool sw__chart_is_good(double value)
{
    return fabs(value) <= SW__CHART_LARGEST; /* not of NaN */
}

/* --- what a chart holds --- */

static const char **texts_of(sw_chart *chart, size_t index)
{
    const char **texts[] = {&chart->options.title,   &chart->options.x_label,
                            &chart->options.y_label, &chart->options.x_unit,
                            &chart->options.y_unit,  &chart->options.empty};
    return index < sizeof texts / sizeof texts[0] ? texts[index] : NULL;
}

int sw_chart_create(sw_chart **out, const sw_chart_options *options, sw_error_info *info)
{
    *out = NULL;
    if (!options || (unsigned)options->kind > SW_CHART_BARS ||
        (unsigned)options->scale > SW_SCALE_LOG ||
        (unsigned)options->split > SW_SPLIT_APART) {
        return sw_error_set(info, SW_EINVAL, "there is no such kind of chart");
    }
    const double sizes[] = {options->width, options->height};
    for (size_t i = 0; i < 2; i++) {
        if (sizes[i] != 0 && !(sizes[i] >= SIZE_LEAST && sizes[i] <= SIZE_MOST)) {
            return sw_error_set(info, SW_EINVAL,
                                "width and height of a chart lie between %d and %d px",
                                (int)SIZE_LEAST, (int)SIZE_MOST);
        }
    }
    sw_chart *chart = sw__alloc_zero(1, sizeof *chart);
    if (!chart) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    bool whole = true;
    chart->options = *options;
    for (size_t i = 0; texts_of(chart, i); i++) {
        const char **text = texts_of(chart, i);
        *text = *text ? sw__strndup(*text, strlen(*text)) : sw__strndup("", 0);
        whole = whole && *text;
    }
    if (!whole) {
        sw_chart_free(chart);
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    *out = chart;
    return SW_OK;
}

void sw_chart_free(sw_chart *chart)
{
    if (!chart) {
        return;
    }
    for (size_t i = 0; texts_of(chart, i); i++) {
        sw__free((char *)*texts_of(chart, i));
    }
    for (size_t i = 0; i < chart->series_count; i++) {
        sw__free(chart->series[i].name);
        sw__free(chart->series[i].x);
        sw__free(chart->series[i].y);
    }
    for (size_t i = 0; i < chart->bar_count; i++) {
        sw__free(chart->bars[i].name);
        sw__free(chart->bars[i].values);
    }
    sw__free(chart->series);
    sw__free(chart->bars);
    sw__free(chart);
}

static double *copy_of(const double *values, size_t count)
{
    double *copy = sw__alloc_zero(count, sizeof *copy);
    if (copy && count > 0) {
        memcpy(copy, values, count * sizeof *copy);
    }
    return copy;
}

/* `x` and `y` may be NULL where the kind has none. */
static int series_add(sw_chart *chart, const char *name, size_t name_length,
                      const double *x, const double *y, size_t count)
{
    struct sw__series *grown =
        sw__realloc(chart->series, chart->series_count + 1, sizeof *grown);
    if (!grown) {
        return SW_ENOMEM;
    }
    chart->series = grown;
    struct sw__series made = {.name_length = name_length, .count = count};
    made.name = sw__strndup(name, name_length);
    made.x = x ? copy_of(x, count) : NULL;
    made.y = y ? copy_of(y, count) : NULL;
    if (!made.name || (x && !made.x) || (y && !made.y)) {
        sw__free(made.name);
        sw__free(made.x);
        sw__free(made.y);
        return SW_ENOMEM;
    }
    chart->series[chart->series_count++] = made;
    return SW_OK;
}

int sw_chart_add_values(sw_chart *chart, const char *name, size_t name_length,
                        const double *values, size_t count)
{
    if (chart->options.kind != SW_CHART_HISTOGRAM) {
        return SW_EINVAL;
    }
    static const double none[1];
    return series_add(chart, name, name_length, NULL, count ? values : none, count);
}

int sw_chart_add_line(sw_chart *chart, const char *name, size_t name_length,
                      const double *x, const double *y, size_t count)
{
    if (chart->options.kind != SW_CHART_LINES && chart->options.kind != SW_CHART_AREAS) {
        return SW_EINVAL;
    }
    static const double none[1];
    return series_add(chart, name, name_length, count ? x : none, count ? y : none,
                      count);
}

static int group_of(sw_chart *chart, const char *group, size_t length, size_t *index)
{
    for (size_t i = 0; i < chart->series_count; i++) {
        if (chart->series[i].name_length == length &&
            memcmp(chart->series[i].name, group, length) == 0) {
            *index = i;
            return SW_OK;
        }
    }
    *index = chart->series_count;
    return chart->series_count < SW__CHART_GROUPS
               ? series_add(chart, group, length, NULL, NULL, 0)
               : SW_ELIMIT;
}

/* The row of that name, if it is the last one, else a new one. */
static int bars_of(sw_chart *chart, const char *name, size_t length,
                   struct sw__bars **out)
{
    if (chart->bar_count > 0) {
        *out = &chart->bars[chart->bar_count - 1];
        if ((*out)->name_length == length && memcmp((*out)->name, name, length) == 0) {
            return SW_OK;
        }
    }
    if (chart->bar_count == chart->bar_room) {
        const size_t room = chart->bar_room ? 2 * chart->bar_room : 16;
        struct sw__bars *grown = sw__realloc(chart->bars, room, sizeof *grown);
        if (!grown) {
            return SW_ENOMEM;
        }
        chart->bars = grown;
        chart->bar_room = room;
    }
    char *copy = sw__strndup(name, length);
    if (!copy) {
        return SW_ENOMEM;
    }
    *out = &chart->bars[chart->bar_count++];
    **out = (struct sw__bars){.name = copy, .name_length = length};
    return SW_OK;
}

int sw_chart_add_bar(sw_chart *chart, const char *name, size_t name_length,
                     const char *group, size_t group_length, double value)
{
    size_t index;
    struct sw__bars *bars;
    if (chart->options.kind != SW_CHART_BARS) {
        return SW_EINVAL;
    }
    int error = group_of(chart, group ? group : "", group ? group_length : 0, &index);
    if (!error) {
        error = bars_of(chart, name, name_length, &bars);
    }
    if (error) {
        return error;
    }
    if (index >= bars->room) {
        double *grown = sw__realloc(bars->values, index + 1, sizeof *grown);
        if (!grown) {
            return SW_ENOMEM;
        }
        for (size_t i = bars->room; i <= index; i++) {
            grown[i] = NAN;
        }
        bars->values = grown;
        bars->room = index + 1;
    }
    bars->values[index] = value;
    return SW_OK;
}

/* --- the page --- */

static double height_of(const sw_chart *chart)
{
    if (chart->options.height > 0) {
        return chart->options.height;
    }
    double height = HEIGHT;
    if (chart->options.kind == SW_CHART_HISTOGRAM) {
        height = sw__histogram_height(chart);
    } else if (chart->options.kind == SW_CHART_BARS) {
        height = sw__bars_height(chart);
    }
    return fmin(fmax(height, SIZE_LEAST), SIZE_MOST);
}

static void chart_draw(sw__drawing *drawing, const sw_chart *chart, struct sw__box box)
{
    static void (*const draw[])(sw__drawing *, const sw_chart *, struct sw__box) = {
        [SW_CHART_HISTOGRAM] = sw__histogram_draw,
        [SW_CHART_LINES] = sw__lines_draw,
        [SW_CHART_AREAS] = sw__areas_draw,
        [SW_CHART_BARS] = sw__bars_draw};
    const struct sw__box inner = {box.x + MARGIN, box.y + MARGIN, box.width - 2 * MARGIN,
                                  box.height - 2 * MARGIN};
    draw[chart->options.kind](drawing, chart, inner);
}

struct layout {
    size_t columns;
    double width[PAGE_CHARTS];  /* of columns */
    double height[PAGE_CHARTS]; /* of rows */
    double top;                 /* of the title */
    double whole_width, whole_height;
};

static void lay_out(struct layout *it, const sw_chart *const *charts, size_t count,
                    const sw_chart_page *page)
{
    *it = (struct layout){.columns = page && page->columns ? page->columns
                                     : count > 1           ? 2
                                                           : 1};
    it->columns = it->columns > count ? count : it->columns;
    it->top = page && page->title && *page->title ? 40 : 0;
    it->whole_height = it->top;
    for (size_t i = 0; i < count; i++) {
        const double usual = it->columns > 1 ? CELL_WIDTH : WIDTH;
        const double width =
            charts[i]->options.width > 0 ? charts[i]->options.width : usual;
        double *column = &it->width[i % it->columns];
        double *row = &it->height[i / it->columns];
        *column = fmax(*column, width);
        *row = fmax(*row, height_of(charts[i]));
    }
    for (size_t i = 0; i < it->columns; i++) {
        it->whole_width += it->width[i];
    }
    for (size_t i = 0; i < (count + it->columns - 1) / it->columns; i++) {
        it->whole_height += it->height[i];
    }
}

static void page_draw(sw__drawing *drawing, const struct layout *it,
                      const sw_chart *const *charts, size_t count,
                      const sw_chart_page *page)
{
    if (it->top > 0) {
        sw__draw_text(drawing, MARGIN, 30,
                      (struct sw__type){.size = 19, .bold = true, .ink = SW__INK_TEXT},
                      it->whole_width - 2 * MARGIN, page->title, strlen(page->title));
    }
    struct sw__box box = {.y = it->top};
    for (size_t i = 0; i < count; i++) {
        const size_t column = i % it->columns;
        box.x = column == 0 ? 0 : box.x + box.width;
        box.y += column == 0 && i > 0 ? box.height : 0;
        box.width = it->width[column];
        box.height = it->height[i / it->columns];
        chart_draw(drawing, charts[i], box);
    }
}

int sw_charts_write(sw_writer *writer, enum sw_chart_format format,
                    const sw_chart *const *charts, size_t count,
                    const sw_chart_page *page, sw_error_info *info)
{
    if (count == 0 || count > PAGE_CHARTS || (unsigned)format > SW_CHART_PNG) {
        return sw_error_set(info, SW_EINVAL, "an image holds between 1 and %d charts",
                            PAGE_CHARTS);
    }
    struct layout *layout = sw__alloc_zero(1, sizeof *layout);
    sw__drawing *drawing = NULL;
    int error = SW_ENOMEM;
    if (!layout) {
        goto out;
    }
    lay_out(layout, charts, count, page);
    drawing = sw__drawing_create(layout->whole_width, layout->whole_height);
    if (!drawing) {
        goto out;
    }
    page_draw(drawing, layout, charts, count, page);
    error = sw__drawing_error(drawing);
    if (error) {
        goto out;
    }
    if (format == SW_CHART_PNG) {
        error = sw__drawing_png(drawing, writer);
    } else {
        const char *title = layout->top > 0 ? page->title : charts[0]->options.title;
        sw__drawing_svg(drawing, writer, format == SW_CHART_SVG_INLINE, title);
    }
out:
    sw__drawing_free(drawing);
    sw__free(layout);
    return error ? sw_error_set(info, error, "%s", sw_error_text(error)) : SW_OK;
}

/* --- ranking --- */

struct ranked {
    double weight;
    size_t index;
};

static bool is_heavier(const struct ranked *a, const struct ranked *b)
{
    return a->weight > b->weight || (a->weight == b->weight && a->index < b->index);
}

/* Heapsort: no memory, no recursion, and the same order everywhere. */
static void sink(struct ranked *items, size_t at, size_t count)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) {
            return;
        }
        child += child + 1 < count && is_heavier(&items[child], &items[child + 1]);
        if (!is_heavier(&items[at], &items[child])) {
            return;
        }
        const struct ranked other = items[at];
        items[at] = items[child];
        items[child] = other;
        at = child;
    }
}

size_t *sw__chart_ranking(const double *weight, size_t count)
{
    struct ranked *items = sw__alloc_zero(count, sizeof *items);
    size_t *order = sw__alloc_zero(count, sizeof *order);
    if (!items || !order) {
        sw__free(items);
        sw__free(order);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct ranked){isnan(weight[i]) ? -INFINITY : weight[i], i};
    }
    for (size_t i = count / 2; i > 0; i--) {
        sink(items, i - 1, count);
    }
    for (size_t left = count; left > 0; left--) { /* the lightest of the rest is at 0 */
        order[left - 1] = items[0].index;
        items[0] = items[left - 1];
        sink(items, 0, left - 1);
    }
    sw__free(items);
    return order;
}
