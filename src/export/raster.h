/* Pixels, and shapes drawn onto them with smooth edges. */
#ifndef SW_EXPORT_RASTER_H
#define SW_EXPORT_RASTER_H

#include <stddef.h>
#include <stdint.h>

#include "export/draw.h"

struct sw__raster {
    size_t width, height;
    uint8_t *pixels; /* red, green, blue of each, rows from the top; white at first */
    float *cover;    /* of the shape that is being drawn, how much of each pixel */
    size_t left, top, right, bottom; /* where `cover` is not 0; empty: right ≤ left */
};

/* 0 or SW_ENOMEM; free with sw__raster_free in either case. */
int sw__raster_create(struct sw__raster *raster, size_t width, size_t height);
void sw__raster_free(struct sw__raster *raster);

/* Coordinates are pixels. A shape is put together from pieces and then painted in one colour, so that pieces that overlap
 * are not painted twice. */
void sw__raster_polygon(struct sw__raster *raster, const struct sw__point *points,
                        size_t count);
/* A piece of a line with round ends. */
void sw__raster_piece(struct sw__raster *raster, struct sw__point from,
                      struct sw__point to, double width);
void sw__raster_paint(struct sw__raster *raster, uint32_t colour, double opacity);

#endif
