#include "export/raster.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

int sw__raster_create(struct sw__raster *raster, size_t width, size_t height)
{
    *raster = (struct sw__raster){.width = width, .height = height};
    /* A column more, for edges on the right border. */
    raster->cover = sw__alloc_zero(height, (width + 2) * sizeof *raster->cover);
    raster->pixels = sw__alloc(width * height * 3);
    if (!raster->cover || !raster->pixels) {
        return SW_ENOMEM;
    }
    memset(raster->pixels, 0xFF, width * height * 3);
    return SW_OK;
}

void sw__raster_free(struct sw__raster *raster)
{
    sw__free(raster->cover);
    sw__free(raster->pixels);
    *raster = (struct sw__raster){0};
}

static float *row_of(struct sw__raster *raster, size_t y)
{
    return raster->cover + y * (raster->width + 2);
}

static double within(double value, double most)
{
    return value > 0 ? fmin(value, most) : 0;
}

/* Remembers that a shape may reach there; borders are kept within the picture. */
static void touch(struct sw__raster *raster, double left, double top, double right,
                  double bottom)
{
    const size_t l = (size_t)within(floor(left), (double)raster->width);
    const size_t t = (size_t)within(floor(top), (double)raster->height);
    const size_t r = (size_t)within(ceil(right), (double)raster->width);
    const size_t b = (size_t)within(ceil(bottom), (double)raster->height);
    if (raster->right <= raster->left || raster->bottom <= raster->top) {
        raster->left = l;
        raster->top = t;
        raster->right = r;
        raster->bottom = b;
        return;
    }
    raster->left = l < raster->left ? l : raster->left;
    raster->top = t < raster->top ? t : raster->top;
    raster->right = r > raster->right ? r : raster->right;
    raster->bottom = b > raster->bottom ? b : raster->bottom;
}

/* --- polygons --- */

/* An edge within one row adds, to each pixel, the change of coverage that it makes there: the sum from the left is the
 * coverage itself. `down` is the height of the edge in the row, with its direction as sign. */
static void edge_in_row(float *row, double x0, double x1, double down)
{
    const double left = fmin(x0, x1), right = fmax(x0, x1);
    const size_t first = (size_t)left, last = (size_t)ceil(right);
    if (last <= first + 1) {
        const double middle = (left + right) / 2 - (double)first;
        row[first] += (float)(down * (1 - middle));
        row[first + 1] += (float)(down * middle);
        return;
    }
    /* The area to the left of the edge grows over several pixels: its exact share in each. */
    const double slope = 1 / (right - left);
    double before = 0;
    for (size_t x = first; x < last; x++) {
        const double from = fmax(left, (double)x), to = fmin(right, (double)x + 1);
        const double reached = slope * (to - left);
        const double area = slope * (to - from) * ((from + to) / 2 - left) +
                            reached * ((double)x + 1 - to);
        row[x] += (float)(down * (area - before));
        before = area;
    }
    row[last] += (float)(down * (1 - before));
}

static void edge(struct sw__raster *raster, struct sw__point from, struct sw__point to)
{
    double sign = 1;
    if (from.y > to.y) {
        const struct sw__point other = from;
        from = to;
        to = other;
        sign = -1;
    }
    if (!(to.y > from.y)) {
        return;
    }
    const double slope = (to.x - from.x) / (to.y - from.y);
    const double most = (double)raster->width;
    for (size_t y = (size_t)from.y; y < raster->height && (double)y < to.y; y++) {
        const double begin = fmax(from.y, (double)y), end = fmin(to.y, (double)y + 1);
        const double x0 = within(from.x + (begin - from.y) * slope, most);
        const double x1 = within(from.x + (end - from.y) * slope, most);
        edge_in_row(row_of(raster, y), x0, x1, sign * (end - begin));
    }
}

void sw__raster_polygon(struct sw__raster *raster, const struct sw__point *points,
                        size_t count)
{
    const double right = (double)raster->width, bottom = (double)raster->height;
    double box[4] = {right, bottom, 0, 0};
    for (size_t i = 0; i < count; i++) {
        const struct sw__point *a = &points[i], *b = &points[(i + 1) % count];
        const struct sw__point from = {within(a->x, right), within(a->y, bottom)};
        const struct sw__point to = {within(b->x, right), within(b->y, bottom)};
        edge(raster, from, to);
        box[0] = fmin(box[0], from.x);
        box[1] = fmin(box[1], from.y);
        box[2] = fmax(box[2], from.x);
        box[3] = fmax(box[3], from.y);
    }
    if (!(box[2] > box[0]) || !(box[3] > box[1])) {
        return; /* its edges took each other away */
    }
    touch(raster, box[0], box[1], box[2], box[3]);
    for (size_t y = (size_t)box[1]; y < raster->height && (double)y < box[3]; y++) {
        float *row = row_of(raster, y);
        float sum = 0;
        for (size_t x = (size_t)box[0]; x < raster->width && (double)x < box[2]; x++) {
            sum += row[x];
            row[x] = fminf(fabsf(sum), 1);
        }
        row[(size_t)ceil(box[2])] = 0;
        row[(size_t)ceil(box[2]) + (ceil(box[2]) == box[2])] = 0;
    }
}

/* --- lines --- */

static double distance(struct sw__point from, struct sw__point to, double x, double y)
{
    const double dx = to.x - from.x, dy = to.y - from.y;
    const double length = dx * dx + dy * dy;
    double t = length > 0 ? ((x - from.x) * dx + (y - from.y) * dy) / length : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const double ex = from.x + t * dx - x, ey = from.y + t * dy - y;
    return sqrt(ex * ex + ey * ey);
}

static void short_piece(struct sw__raster *raster, struct sw__point from,
                        struct sw__point to, double width)
{
    const double reach = width / 2 + 1;
    const double left = fmin(from.x, to.x) - reach, right = fmax(from.x, to.x) + reach;
    const double top = fmin(from.y, to.y) - reach, bottom = fmax(from.y, to.y) + reach;
    if (!(right > 0) || !(bottom > 0) || !(left < (double)raster->width) ||
        !(top < (double)raster->height)) {
        return;
    }
    touch(raster, left, top, right, bottom);
    for (size_t y = (size_t)within(top, bottom); y < raster->height && (double)y < bottom;
         y++) {
        float *row = row_of(raster, y);
        for (size_t x = (size_t)within(left, right);
             x < raster->width && (double)x < right; x++) {
            const double far = distance(from, to, (double)x + 0.5, (double)y + 0.5);
            const float cover = (float)within(width / 2 + 0.5 - far, 1);
            row[x] = fmaxf(row[x], cover);
        }
    }
}

/* A long slope is cut up, for all pixels around a piece are looked at. */
#define PIECE_MOST 48.0

void sw__raster_piece(struct sw__raster *raster, struct sw__point from,
                      struct sw__point to, double width)
{
    const double dx = to.x - from.x, dy = to.y - from.y;
    if (fabs(dx) > 1e5 || fabs(dy) > 1e5) {
        return;
    }
    const bool straight = fabs(dx) < 1 || fabs(dy) < 1;
    const double longest = fmax(fabs(dx), fabs(dy));
    const int pieces = straight ? 1 : (int)(longest / PIECE_MOST) + 1;
    for (int i = 0; i < pieces; i++) {
        const double a = (double)i / pieces, b = (double)(i + 1) / pieces;
        short_piece(raster, (struct sw__point){from.x + a * dx, from.y + a * dy},
                    (struct sw__point){from.x + b * dx, from.y + b * dy}, width);
    }
}

void sw__raster_paint(struct sw__raster *raster, uint32_t colour, double opacity)
{
    const float channel[3] = {(float)(colour >> 16 & 0xFF), (float)(colour >> 8 & 0xFF),
                              (float)(colour & 0xFF)};
    for (size_t y = raster->top; y < raster->bottom; y++) {
        float *row = row_of(raster, y);
        uint8_t *pixel = raster->pixels + (y * raster->width + raster->left) * 3;
        for (size_t x = raster->left; x < raster->right; x++, pixel += 3) {
            /* Sixteen steps look smooth, and few colours pack well. */
            const float share = floorf(row[x] * 16 + 0.5F) / 16 * (float)opacity;
            for (int i = 0; share > 0 && i < 3; i++) {
                const float old = (float)pixel[i];
                pixel[i] = (uint8_t)(old + (channel[i] - old) * share + 0.5F);
            }
            row[x] = 0;
        }
    }
    raster->left = raster->right = raster->top = raster->bottom = 0;
}
