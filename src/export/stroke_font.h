/* A small font of our own, drawn with strokes: printable ASCII and the few signs that charts use. */
#ifndef SW_EXPORT_STROKE_FONT_H
#define SW_EXPORT_STROKE_FONT_H

#include <stdbool.h>
#include <stdint.h>

/* Of an em, in the units of the font. */
#define SW__EM 28.0

/* The character that stands for `code`: itself, the letter below its accent, or a box. */
uint32_t sw__glyph_of(uint32_t code);
/* How far the next one is, as a share of the em. `code` as it is in the text. */
double sw__glyph_advance(uint32_t code);
/* Calls `line` for every straight piece; coordinates are shares of the em, y upward from the line that letters stand on. A
 * dot is a piece without length. */
void sw__glyph_strokes(uint32_t code,
                       void (*line)(void *arg, double x0, double y0, double x1,
                                    double y1),
                       void *arg);

#endif
