#include "export/draw.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "export/stroke_font.h"

/* More shapes than any chart has; a limit for what hostile input may take. */
#define MEMORY_MOST ((size_t)256 << 20)

struct sw__drawing {
    double width, height;
    sw__arena *arena;
    struct sw__shape *first, **last;
    int error;
};

static const struct {
    uint32_t colour;
    const char *variable;
} inks[SW__INKS] = {
    [SW__INK_BACK] = {0xFFFFFF, "--card"},     [SW__INK_TEXT] = {0x1C1E21, "--text"},
    [SW__INK_DIM] = {0x5D636B, "--dim"},       [SW__INK_GRID] = {0xDFE1E4, "--line"},
    [SW__INK_OTHERS] = {0xA9AEB4, "--rest"},   [SW__INK_SERIES] = {0x2166AC, "--s0"},
    [SW__INK_SERIES + 1] = {0xE08214, "--s1"}, [SW__INK_SERIES + 2] = {0x2E8B57, "--s2"},
    [SW__INK_SERIES + 3] = {0xC0362C, "--s3"}, [SW__INK_SERIES + 4] = {0x7B52AB, "--s4"},
    [SW__INK_SERIES + 5] = {0x1799A6, "--s5"}, [SW__INK_SERIES + 6] = {0x8C6239, "--s6"},
    [SW__INK_SERIES + 7] = {0xD6589F, "--s7"}, [SW__INK_SERIES + 8] = {0x83861B, "--s8"},
    [SW__INK_SERIES + 9] = {0x56677C, "--s9"},
};

uint32_t sw__ink_colour(unsigned ink)
{
    return inks[ink < SW__INKS ? ink : SW__INK_OTHERS].colour;
}

const char *sw__ink_variable(unsigned ink)
{
    return inks[ink < SW__INKS ? ink : SW__INK_OTHERS].variable;
}

sw__drawing *sw__drawing_create(double width, double height)
{
    sw__drawing *drawing = sw__alloc_zero(1, sizeof *drawing);
    if (!drawing) {
        return NULL;
    }
    drawing->width = width;
    drawing->height = height;
    drawing->last = &drawing->first;
    drawing->arena = sw__arena_create(MEMORY_MOST);
    if (!drawing->arena) {
        sw__free(drawing);
        return NULL;
    }
    return drawing;
}

void sw__drawing_free(sw__drawing *drawing)
{
    if (drawing) {
        sw__arena_free(drawing->arena);
        sw__free(drawing);
    }
}

double sw__drawing_width(const sw__drawing *drawing)
{
    return drawing->width;
}

double sw__drawing_height(const sw__drawing *drawing)
{
    return drawing->height;
}

const struct sw__shape *sw__drawing_first(const sw__drawing *drawing)
{
    return drawing->first;
}

int sw__drawing_error(const sw__drawing *drawing)
{
    return drawing->error;
}

/* --- shapes --- */

static struct sw__shape *shape_add(sw__drawing *drawing, enum sw__shape_kind kind,
                                   unsigned ink)
{
    struct sw__shape *shape =
        drawing->error
            ? NULL
            : sw__arena_take(drawing->arena, sizeof *shape, _Alignof(struct sw__shape));
    if (!shape) {
        drawing->error = SW_ENOMEM;
        return NULL;
    }
    *shape = (struct sw__shape){.kind = kind, .ink = ink, .opacity = 1};
    *drawing->last = shape;
    drawing->last = &shape->next;
    return shape;
}

static struct sw__shape *points_add(sw__drawing *drawing, enum sw__shape_kind kind,
                                    unsigned ink, const struct sw__point *points,
                                    size_t count)
{
    if (count == 0) {
        return NULL;
    }
    struct sw__point *copy = drawing->error
                                 ? NULL
                                 : sw__arena_take(drawing->arena, count * sizeof *copy,
                                                  _Alignof(struct sw__point));
    if (!copy) {
        drawing->error = SW_ENOMEM;
        return NULL;
    }
    memcpy(copy, points, count * sizeof *copy);
    struct sw__shape *shape = shape_add(drawing, kind, ink);
    if (shape) {
        shape->points = copy;
        shape->count = count;
    }
    return shape;
}

void sw__draw_polygon(sw__drawing *drawing, const struct sw__point *points, size_t count,
                      unsigned ink, double opacity)
{
    struct sw__shape *shape = points_add(drawing, SW__SHAPE_POLYGON, ink, points, count);
    if (shape) {
        shape->opacity = opacity;
    }
}

void sw__draw_line(sw__drawing *drawing, const struct sw__point *points, size_t count,
                   double width, unsigned ink)
{
    struct sw__shape *shape = points_add(drawing, SW__SHAPE_LINE, ink, points, count);
    if (shape) {
        shape->width = width;
    }
}

void sw__draw_rectangle(sw__drawing *drawing, double x, double y, double width,
                        double height, unsigned ink)
{
    const struct sw__point corners[] = {
        {x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
    sw__draw_polygon(drawing, corners, 4, ink, 1);
}

void sw__draw_segment(sw__drawing *drawing, double x0, double y0, double x1, double y1,
                      double width, unsigned ink)
{
    const struct sw__point ends[] = {{x0, y0}, {x1, y1}};
    sw__draw_line(drawing, ends, 2, width, ink);
}

/* --- text --- */

static double width_of(struct sw__type type, uint32_t code)
{
    return sw__glyph_advance(code) * type.size * (type.bold ? 1.06 : 1);
}

double sw__draw_measure(struct sw__type type, const char *bytes, size_t length)
{
    double width = 0;
    while (length > 0) {
        uint32_t code;
        const size_t taken = sw__utf8_decode(bytes, length, &code);
        width += width_of(type, code == SW__UTF8_INVALID ? 0xFFFD : code);
        bytes += taken;
        length -= taken;
    }
    return width;
}

/* The end of what fits into `room` from the front. */
static size_t head_of(struct sw__type type, const char *text, size_t length, double room)
{
    size_t at = 0;
    while (at < length) {
        uint32_t code;
        const size_t taken = sw__utf8_decode(text + at, length - at, &code);
        room -= width_of(type, code);
        if (room < 0) {
            break;
        }
        at += taken;
    }
    return at;
}

/* The beginning of what fits into `room` from the back, not before `least`. */
static size_t tail_of(struct sw__type type, const char *text, size_t length, double room,
                      size_t least)
{
    size_t at = length;
    while (at > least) {
        size_t before = at - 1;
        while (before > least && ((unsigned char)text[before] & 0xC0) == 0x80) {
            before--;
        }
        uint32_t code;
        (void)sw__utf8_decode(text + before, length - before, &code);
        room -= width_of(type, code);
        if (room < 0) {
            break;
        }
        at = before;
    }
    return at;
}

static char *shortened(sw__drawing *drawing, struct sw__type type, double most,
                       const char *text, size_t length)
{
    static const char dots[] = "…";
    char *copy = sw__arena_take(drawing->arena, length + sizeof dots, 1);
    if (!copy) {
        return NULL;
    }
    if (most <= 0 || sw__draw_measure(type, text, length) <= most) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    } else {
        const double room = most - width_of(type, 0x2026);
        const size_t head = head_of(type, text, length, room * 0.55);
        const double left = room - sw__draw_measure(type, text, head);
        const size_t tail = tail_of(type, text, length, left, head);
        memcpy(copy, text, head);
        memcpy(copy + head, dots, sizeof dots - 1);
        memcpy(copy + head + sizeof dots - 1, text + tail, length - tail);
        copy[head + sizeof dots - 1 + length - tail] = '\0';
    }
    return copy;
}

double sw__draw_text(sw__drawing *drawing, double x, double y, struct sw__type type,
                     double most, const char *bytes, size_t length)
{
    sw_writer *visible = drawing->error ? NULL : sw_writer_to_memory();
    if (!visible) {
        drawing->error = SW_ENOMEM;
        return 0;
    }
    /* Of a name of a megabyte nobody sees the middle. */
    sw_write_visible(visible, bytes, length < 4096 ? length : 4096, 0, false);
    size_t shown;
    const char *text = sw_writer_text(visible, &shown);
    char *copy = shortened(drawing, type, most, text, shown);
    if (sw_writer_close(visible, NULL) || !copy) {
        drawing->error = SW_ENOMEM;
        return 0;
    }
    struct sw__shape *shape = shape_add(drawing, SW__SHAPE_TEXT, type.ink);
    struct sw__point *point =
        sw__arena_take(drawing->arena, sizeof *point, _Alignof(struct sw__point));
    if (!shape || !point) {
        drawing->error = SW_ENOMEM;
        return 0;
    }
    *point = (struct sw__point){x, y};
    shape->points = point;
    shape->count = 1;
    shape->type = type;
    shape->text = copy;
    return sw__draw_measure(type, copy, strlen(copy));
}
