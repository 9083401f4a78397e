/* A drawing as PNG: pixels, twice as many each way as px. */
#include <math.h>
#include <string.h>

#include "base/crc.h"
#include "base/deflate.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "export/raster.h"
#include "export/stroke_font.h"

#define SCALE 2.0
#define PIXELS_MOST ((size_t)64 << 20)
#define DOTS_PER_METRE 11811u /* 300 an inch */

/* --- pixels --- */

struct pen {
    struct sw__raster *raster;
    double x, y, em, width; /* in pixels */
};

static void stroke(void *arg, double x0, double y0, double x1, double y1)
{
    const struct pen *pen = arg;
    sw__raster_piece(
        pen->raster, (struct sw__point){pen->x + x0 * pen->em, pen->y - y0 * pen->em},
        (struct sw__point){pen->x + x1 * pen->em, pen->y - y1 * pen->em}, pen->width);
}

static void draw_text(struct sw__raster *raster, const struct sw__shape *shape,
                      double scale)
{
    const struct sw__type type = shape->type;
    const char *at = shape->text;
    size_t left = strlen(at);
    const double width = sw__draw_measure(type, at, left);
    const double shift = type.anchor == SW__MIDDLE ? width / 2
                         : type.anchor == SW__END  ? width
                                                   : 0;
    struct pen pen = {.raster = raster,
                      .x = (shape->points[0].x - shift) * scale,
                      .y = shape->points[0].y * scale,
                      .em = type.size * scale};
    pen.width = pen.em * (type.bold ? 0.125 : 0.085);
    while (left > 0) {
        uint32_t code;
        const size_t taken = sw__utf8_decode(at, left, &code);
        sw__glyph_strokes(code, stroke, &pen);
        pen.x += sw__draw_measure(type, at, taken) * scale;
        at += taken;
        left -= taken;
    }
}

static int draw_points(struct sw__raster *raster, const struct sw__shape *shape,
                       double scale)
{
    struct sw__point *points = sw__alloc_zero(shape->count, sizeof *points);
    if (!points) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < shape->count; i++) {
        points[i].x = shape->points[i].x * scale;
        points[i].y = shape->points[i].y * scale;
    }
    if (shape->kind == SW__SHAPE_POLYGON) {
        sw__raster_polygon(raster, points, shape->count);
    } else {
        for (size_t i = shape->count > 1; i < shape->count; i++) {
            sw__raster_piece(raster, points[i ? i - 1 : 0], points[i],
                             shape->width * scale);
        }
    }
    sw__free(points);
    return SW_OK;
}

static int draw_all(struct sw__raster *raster, const sw__drawing *drawing, double scale)
{
    for (const struct sw__shape *shape = sw__drawing_first(drawing); shape;
         shape = shape->next) {
        int error = SW_OK;
        if (shape->kind == SW__SHAPE_TEXT) {
            draw_text(raster, shape, scale);
        } else {
            error = draw_points(raster, shape, scale);
        }
        if (error) {
            return error;
        }
        sw__raster_paint(raster, sw__ink_colour(shape->ink), shape->opacity);
    }
    return SW_OK;
}

/* --- the file --- */

static void put_u32(uint8_t out[4], uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void put_chunk(sw_writer *w, const char type[4], const void *data, size_t length)
{
    uint8_t number[4];
    put_u32(number, (uint32_t)length);
    sw_write_bytes(w, (const char *)number, 4);
    sw_write_bytes(w, type, 4);
    sw_write_bytes(w, data, length);
    uint32_t sum = sw__crc(SW__CRC32, 0, type, 4);
    sum = sw__crc(SW__CRC32, sum, data, length);
    put_u32(number, sum);
    sw_write_bytes(w, (const char *)number, 4);
}

/* Rows as they are, each after the number of its filter: in charts that packs better than differences do. */
static uint8_t *rows_of(const struct sw__raster *raster, size_t *length)
{
    const size_t row = raster->width * 3;
    uint8_t *out = sw__alloc_zero(raster->height, row + 1);
    *length = raster->height * (row + 1);
    for (size_t y = 0; out && y < raster->height; y++) {
        memcpy(out + y * (row + 1) + 1, raster->pixels + y * row, row);
    }
    return out;
}

static int put_png(sw_writer *w, const struct sw__raster *raster)
{
    uint8_t header[13] = {0}, density[9] = {0};
    size_t length = 0, packed_length = 0;
    int error = SW_ENOMEM;
    sw_writer *packed = sw_writer_to_memory();
    uint8_t *rows = rows_of(raster, &length);
    if (!packed || !rows) {
        goto out;
    }
    error = sw__deflate(packed, rows, length);
    const char *bytes = sw_writer_text(packed, &packed_length);
    if (error || (error = sw_writer_flush(packed))) {
        goto out;
    }
    put_u32(header, (uint32_t)raster->width);
    put_u32(header + 4, (uint32_t)raster->height);
    header[8] = 8; /* bits */
    header[9] = 2; /* red, green, blue */
    put_u32(density, DOTS_PER_METRE);
    put_u32(density + 4, DOTS_PER_METRE);
    density[8] = 1; /* a metre */
    sw_write_bytes(w, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(w, "IHDR", header, sizeof header);
    put_chunk(w, "pHYs", density, sizeof density);
    put_chunk(w, "IDAT", bytes, packed_length);
    put_chunk(w, "IEND", "", 0);
out:
    sw_writer_close(packed, NULL);
    sw__free(rows);
    return error;
}

int sw__drawing_png(const sw__drawing *drawing, sw_writer *writer)
{
    struct sw__raster raster;
    const double width = sw__drawing_width(drawing);
    const double height = sw__drawing_height(drawing);
    /* A very long page gets fewer pixels, not a program without memory. */
    double scale = SCALE;
    if (width * height * scale * scale > (double)PIXELS_MOST) {
        scale = sqrt((double)PIXELS_MOST / (width * height));
    }
    int error = sw__raster_create(&raster, (size_t)fmax(1, floor(width * scale)),
                                  (size_t)fmax(1, floor(height * scale)));
    if (!error) {
        error = draw_all(&raster, drawing, scale);
    }
    if (!error) {
        error = put_png(writer, &raster);
    }
    sw__raster_free(&raster);
    return error;
}
