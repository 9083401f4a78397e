/* A drawing as SVG: shapes become paths, texts stay texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/draw.h"
#include "export/html_page.h"

/* Hundredths of a px, in digits that no locale writes in its own way. */
static void put_number(sw_writer *w, double value)
{
    long hundredths = lround(fmin(fmax(value, -1e6), 1e6) * 100);
    if (hundredths < 0) {
        sw_write_text(w, "-");
        hundredths = -hundredths;
    }
    sw_write_format(w, "%ld", hundredths / 100);
    if (hundredths % 100) {
        sw_write_format(w, hundredths % 10 ? ".%02ld" : ".%ld",
                        hundredths % 10 ? hundredths % 100 : hundredths % 100 / 10);
    }
}

static void put_attribute(sw_writer *w, const char *name, double value)
{
    sw_write_format(w, " %s=\"", name);
    put_number(w, value);
    sw_write_text(w, "\"");
}

/* A page has its own colours; where it does not, ours serve. */
static void put_colour(sw_writer *w, const char *property, unsigned ink, bool in_page)
{
    const unsigned colour = sw__ink_colour(ink);
    if (in_page) {
        sw_write_format(w, " style=\"%s:var(%s,#%06x)\"", property, sw__ink_variable(ink),
                        colour);
    } else {
        sw_write_format(w, " %s=\"#%06x\"", property, colour);
    }
}

static void put_path(sw_writer *w, const struct sw__shape *shape)
{
    sw_write_text(w, " d=\"");
    for (size_t i = 0; i < shape->count; i++) {
        sw_write_text(w, i == 0 ? "M" : "L");
        put_number(w, shape->points[i].x);
        sw_write_text(w, " ");
        put_number(w, shape->points[i].y);
    }
    if (shape->kind == SW__SHAPE_POLYGON) {
        sw_write_text(w, "Z");
    } else if (shape->count == 1) { /* a dot, by its round ends */
        sw_write_text(w, "h0");
    }
    sw_write_text(w, "\"");
}

static void put_shape(sw_writer *w, const struct sw__shape *shape, bool in_page)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    if (shape->kind == SW__SHAPE_TEXT) {
        sw_write_text(w, "<text");
        put_attribute(w, "x", shape->points[0].x);
        put_attribute(w, "y", shape->points[0].y);
        put_attribute(w, "font-size", shape->type.size);
        if (shape->type.bold) {
            sw_write_text(w, " font-weight=\"600\"");
        }
        if (shape->type.anchor != SW__START) {
            sw_write_format(w, " text-anchor=\"%s\"", anchors[shape->type.anchor]);
        }
        put_colour(w, "fill", shape->ink, in_page);
        sw_write_text(w, ">");
        sw__html_text(w, shape->text);
        sw_write_text(w, "</text>\n");
        return;
    }
    sw_write_text(w, "<path");
    if (shape->kind == SW__SHAPE_LINE) {
        sw_write_text(w, " fill=\"none\"");
        put_attribute(w, "stroke-width", shape->width);
        put_colour(w, "stroke", shape->ink, in_page);
    } else {
        put_colour(w, "fill", shape->ink, in_page);
    }
    if (shape->opacity < 1) {
        put_attribute(w, "opacity", shape->opacity);
    }
    put_path(w, shape);
    sw_write_text(w, "/>\n");
}

void sw__drawing_svg(const sw__drawing *drawing, sw_writer *writer, bool in_page,
                     const char *label)
{
    const double width = sw__drawing_width(drawing);
    const double height = sw__drawing_height(drawing);
    if (in_page) { /* a page needs no name space, and names no other place */
        sw_write_text(writer, "<svg class=\"chart\"");
    } else {
        sw_write_text(writer, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
        put_attribute(writer, "width", width);
        put_attribute(writer, "height", height);
    }
    sw_write_text(writer, " viewBox=\"0 0 ");
    put_number(writer, width);
    sw_write_text(writer, " ");
    put_number(writer, height);
    sw_write_text(writer, "\" font-family=\"system-ui, 'Segoe UI', Arial, 'DejaVu Sans', "
                          "sans-serif\" stroke-linecap=\"round\" "
                          "stroke-linejoin=\"round\" role=\"img\" aria-label=\"");
    sw__html_text(writer, label ? label : "");
    sw_write_text(writer, "\">\n");
    if (!in_page) {
        sw_write_text(writer,
                      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    }
    for (const struct sw__shape *shape = sw__drawing_first(drawing); shape;
         shape = shape->next) {
        put_shape(writer, shape, in_page);
    }
    sw_write_text(writer, "</svg>\n");
}
