/* A picture as a list of shapes, from which SVG and PNG are made alike.
 *
 * Units are px of SVG, y grows downward. The first failure sticks: later calls do nothing, and writing reports it. */
#ifndef SW_EXPORT_DRAW_H
#define SW_EXPORT_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/write.h>

/* Colours by what they are for, so that a page can have its own. */
enum sw__ink {
    SW__INK_BACK,
    SW__INK_TEXT,
    SW__INK_DIM,
    SW__INK_GRID,
    SW__INK_OTHERS,
    SW__INK_SERIES /* and the next SW__SERIES_INKS - 1 */
};
#define SW__SERIES_INKS 10
#define SW__INKS (SW__INK_SERIES + SW__SERIES_INKS)
/* 0xRRGGBB on white, and the variable that a page may set. */
uint32_t sw__ink_colour(unsigned ink);
const char *sw__ink_variable(unsigned ink);

struct sw__point {
    double x, y;
};

enum sw__anchor { SW__START, SW__MIDDLE, SW__END };

/* How a text looks. */
struct sw__type {
    double size; /* of an em */
    bool bold;
    unsigned ink;
    enum sw__anchor anchor;
};

enum sw__shape_kind { SW__SHAPE_POLYGON, SW__SHAPE_LINE, SW__SHAPE_TEXT };

struct sw__shape {
    enum sw__shape_kind kind;
    unsigned ink;
    double opacity;
    double width; /* of a line */
    const struct sw__point *points;
    size_t count;
    struct sw__type type;
    const char *text; /* UTF-8 without control characters */
    struct sw__shape *next;
};

typedef struct sw__drawing sw__drawing;

sw__drawing *sw__drawing_create(double width, double height);
void sw__drawing_free(sw__drawing *drawing);
double sw__drawing_width(const sw__drawing *drawing);
double sw__drawing_height(const sw__drawing *drawing);
const struct sw__shape *sw__drawing_first(const sw__drawing *drawing);
int sw__drawing_error(const sw__drawing *drawing); /* 0 or SW_ENOMEM */

/* Points are copied. Polygons are closed by themselves. */
void sw__draw_polygon(sw__drawing *drawing, const struct sw__point *points, size_t count,
                      unsigned ink, double opacity);
void sw__draw_line(sw__drawing *drawing, const struct sw__point *points, size_t count,
                   double width, unsigned ink);
void sw__draw_rectangle(sw__drawing *drawing, double x, double y, double width,
                        double height, unsigned ink);
void sw__draw_segment(sw__drawing *drawing, double x0, double y0, double x1, double y1,
                      double width, unsigned ink);
/* A text that stands on y, shortened in the middle to `most` (0: no limit). Returns its width. */
double sw__draw_text(sw__drawing *drawing, double x, double y, struct sw__type type,
                     double most, const char *bytes, size_t length);
/* The width that it would have. */
double sw__draw_measure(struct sw__type type, const char *bytes, size_t length);

/* `label` is read to people who cannot see it. */
void sw__drawing_svg(const sw__drawing *drawing, sw_writer *writer, bool in_page,
                     const char *label);
int sw__drawing_png(const sw__drawing *drawing, sw_writer *writer);

#endif
