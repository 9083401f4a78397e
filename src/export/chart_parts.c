/* The parts that all plots have: title, legend, axes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/chart.h"

#define TITLE_SIZE 15.0
#define TICK_SIZE 11.0
#define LINE 17.0 /* from one line of text to the next */

static double text(sw__drawing *drawing, double x, double y, struct sw__type type,
                   double most, const char *words)
{
    return sw__draw_text(drawing, x, y, type, most, words, strlen(words));
}

static void take_top(struct sw__box *box, double height)
{
    box->y += height;
    box->height = fmax(0, box->height - height);
}

void sw__chart_title(sw__drawing *drawing, struct sw__box *box, const char *title,
                     const char *remark)
{
    if (title && *title) {
        text(drawing, box->x, box->y + TITLE_SIZE,
             (struct sw__type){.size = TITLE_SIZE, .bold = true, .ink = SW__INK_TEXT},
             box->width, title);
        take_top(box, TITLE_SIZE + 8);
    }
    if (remark && *remark) {
        text(drawing, box->x, box->y + 11,
             (struct sw__type){.size = TICK_SIZE, .ink = SW__INK_DIM}, box->width,
             remark);
        take_top(box, LINE);
    }
}

void sw__chart_legend(sw__drawing *drawing, struct sw__box *box,
                      const struct sw__legend_entry *entries, size_t count)
{
    const struct sw__type type = {.size = SW__TEXT_SIZE, .ink = SW__INK_TEXT};
    const double swatch = 11, gap = 18;
    double x = box->x, y = box->y;
    if (count == 0 || (count == 1 && entries[0].name_length == 0)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const double most = fmin(260, box->width - swatch - 6);
        const double width =
            fmin(most, sw__draw_measure(type, entries[i].name, entries[i].name_length));
        if (x > box->x && x + swatch + 6 + width > box->x + box->width) {
            x = box->x;
            y += LINE;
        }
        sw__draw_rectangle(drawing, x, y + 2, swatch, swatch, entries[i].ink);
        x += swatch + 6;
        x += sw__draw_text(drawing, x, y + 12, type, most, entries[i].name,
                           entries[i].name_length);
        x += gap;
    }
    take_top(box, y - box->y + LINE + 4);
}

/* "label (unit)", "label" or "unit". */
static void label_with_unit(char *out, size_t size, const char *label, const char *unit)
{
    const bool named = label && *label, has_unit = unit[0] != '\0';
    if (!named) {
        snprintf(out, size, "%s", unit);
    } else if (has_unit && strcmp(label, unit) != 0) {
        snprintf(out, size, "%s (%s)", label, unit);
    } else {
        snprintf(out, size, "%s", label);
    }
}

/* Lines of one px are sharp where they fill it. */
static double sharp(double at)
{
    return floor(at) + 0.5;
}

static void draw_x(sw__drawing *drawing, struct sw__box plot, const struct sw__axis *axis)
{
    const struct sw__type type = {
        .size = TICK_SIZE, .ink = SW__INK_DIM, .anchor = SW__MIDDLE};
    const double bottom = plot.y + plot.height;
    double free_from = -1e9;
    for (size_t i = 0; i < axis->count; i++) {
        const double at = sharp(plot.x + sw__axis_at(axis, axis->tick[i]) * plot.width);
        const double half =
            sw__draw_measure(type, axis->text[i], strlen(axis->text[i])) / 2;
        sw__draw_segment(drawing, at, bottom, at, bottom + 4, 1, SW__INK_DIM);
        if (at - half < free_from) {
            continue; /* it would run into the one before */
        }
        text(drawing, at, bottom + 16, type, 0, axis->text[i]);
        free_from = at + half + 8;
    }
}

static void draw_y(sw__drawing *drawing, struct sw__box plot, const struct sw__axis *axis)
{
    const struct sw__type type = {
        .size = TICK_SIZE, .ink = SW__INK_DIM, .anchor = SW__END};
    const double bottom = plot.y + plot.height;
    for (size_t i = 0; i < axis->count; i++) {
        const double at = sharp(bottom - sw__axis_at(axis, axis->tick[i]) * plot.height);
        sw__draw_segment(drawing, plot.x, at, plot.x + plot.width, at, 1, SW__INK_GRID);
        text(drawing, plot.x - 6, at + 4, type, 0, axis->text[i]);
    }
}

struct sw__box sw__chart_frame(sw__drawing *drawing, struct sw__box box,
                               const struct sw__axis *x, const struct sw__axis *y,
                               const char *x_label, const char *y_label)
{
    const struct sw__type tick = {.size = TICK_SIZE};
    const struct sw__type dim = {.size = SW__TEXT_SIZE, .ink = SW__INK_DIM};
    char x_text[256], y_text[256];
    double left = 10, right = 10;
    label_with_unit(x_text, sizeof x_text, x_label, x->unit);
    label_with_unit(y_text, sizeof y_text, y_label, y->unit);
    for (size_t i = 0; i < y->count; i++) {
        left = fmax(left, sw__draw_measure(tick, y->text[i], strlen(y->text[i])) + 8);
    }
    if (x->count > 0) { /* half of it may stand beyond the end */
        const char *last = x->text[x->count - 1];
        right = fmax(right, sw__draw_measure(tick, last, strlen(last)) / 2 + 4);
        left = fmax(left, sw__draw_measure(tick, x->text[0], strlen(x->text[0])) / 2);
    }
    const double top = y_text[0] ? LINE + 6 : 8, bottom = x_text[0] ? 22 + LINE : 22;
    const struct sw__box plot = {floor(box.x + left), floor(box.y + top),
                                 fmax(20, floor(box.width - left - right)),
                                 fmax(20, floor(box.height - top - bottom))};
    text(drawing, box.x, box.y + 11, dim, box.width, y_text);
    draw_y(drawing, plot, y);
    sw__draw_segment(drawing, plot.x, sharp(plot.y + plot.height), plot.x + plot.width,
                     sharp(plot.y + plot.height), 1, SW__INK_DIM);
    draw_x(drawing, plot, x);
    struct sw__type centred = dim;
    centred.anchor = SW__MIDDLE;
    text(drawing, plot.x + plot.width / 2, plot.y + plot.height + 34, centred, box.width,
         x_text);
    return plot;
}

void sw__chart_nothing(sw__drawing *drawing, struct sw__box box, const char *why)
{
    const double middle_x = box.x + box.width / 2, middle_y = box.y + box.height / 2;
    const struct sw__point corners[] = {
        {sharp(box.x), sharp(box.y)},
        {sharp(box.x + box.width - 1), sharp(box.y)},
        {sharp(box.x + box.width - 1), sharp(box.y + box.height - 1)},
        {sharp(box.x), sharp(box.y + box.height - 1)},
        {sharp(box.x), sharp(box.y)}};
    sw__draw_line(drawing, corners, 5, 1, SW__INK_GRID);
    text(drawing, middle_x, middle_y,
         (struct sw__type){
             .size = 14, .bold = true, .ink = SW__INK_DIM, .anchor = SW__MIDDLE},
         box.width - 16, "no data");
    if (why && *why) {
        text(drawing, middle_x, middle_y + 20,
             (struct sw__type){
                 .size = SW__TEXT_SIZE, .ink = SW__INK_DIM, .anchor = SW__MIDDLE},
             box.width - 16, why);
    }
}
