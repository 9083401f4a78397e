#include "export/stroke_font.h"

#include <stddef.h>

#include "base/utf8.h"

/* A path is made of M (go to), L (straight to) and Q (curve by a control point to), each with as many numbers as follow.
 * Capitals are 20 high, small letters 14, and 6 below the line. */
struct glyph {
    const char *path;
    int width; /* without the space between letters */
};

/* Space on both sides of a letter together. */
#define SPACING 6.0
#define FIRST 0x20
#define LAST 0x7E
#define BOX "M0 0L12 0 12 18 0 18 0 0"

static const struct glyph ascii[LAST - FIRST + 1] = {
    {"", 3},                                         /* space */
    {"M0 20L0 6M0 1L0 0", 0},                        /* ! */
    {"M0 20L0 15M4 20L4 15", 4},                     /* " */
    {"M5 20L2 0M12 20L9 0M1 13L14 13M0 7L13 7", 14}, /* # */
    {"M12 16Q10 19 6 19 0 19 0 15 0 11 6 10 12 9 12 5 12 1 6 1 2 1 0 4M6 22L6 -2",
     12}, /* $ */
    {"M4 20Q8 20 8 15 8 11 4 11 0 11 0 15 0 20 4 20M14 9Q18 9 18 4 18 0 14 0 10 0 10 4 "
     "10 9 14 9M15 20L3 0",
     18}, /* % */
    {"M14 8Q12 0 5 0 0 0 0 5 0 8 5 11 9 13 9 16 9 20 6 20 3 20 3 16 3 14 5 12L14 0",
     14},                                                   /* & */
    {"M0 20L0 15", 0},                                      /* ' */
    {"M4 22Q0 16 0 9 0 2 4 -4", 4},                         /* ( */
    {"M0 22Q4 16 4 9 4 2 0 -4", 4},                         /* ) */
    {"M4 20L4 12M0 18L8 14M0 14L8 18", 8},                  /* * */
    {"M6 16L6 4M0 10L12 10", 12},                           /* + */
    {"M1 1L1 0 0 -4", 1},                                   /* , */
    {"M0 8L6 8", 6},                                        /* - */
    {"M0 1L0 0", 0},                                        /* . */
    {"M0 -2L8 20", 8},                                      /* / */
    {"M6 20Q12 20 12 10 12 0 6 0 0 0 0 10 0 20 6 20", 12},  /* 0 */
    {"M2 16L7 20 7 0", 12},                                 /* 1 */
    {"M0 15Q0 20 6 20 12 20 12 15 12 11 8 8L0 0 12 0", 12}, /* 2 */
    {"M0 16Q1 20 6 20 11 20 11 15 11 11 5 11M5 11Q12 11 12 5 12 0 6 0 1 0 0 4",
     12},                                                                     /* 3 */
    {"M9 0L9 20 0 6 12 6", 12},                                               /* 4 */
    {"M11 20L2 20 1 11Q3 13 6 13 12 13 12 6 12 0 6 0 1 0 0 4", 12},           /* 5 */
    {"M11 17Q10 20 6 20 0 20 0 9 0 0 6 0 12 0 12 6 12 12 6 12 1 12 0 7", 12}, /* 6 */
    {"M0 20L12 20 4 0", 12},                                                  /* 7 */
    {"M6 11Q1 11 1 15 1 20 6 20 11 20 11 15 11 11 6 11 0 11 0 5 0 0 6 0 12 0 12 5 12 11 "
     "6 11",
     12},                                                                    /* 8 */
    {"M1 3Q2 0 6 0 12 0 12 11 12 20 6 20 0 20 0 14 0 8 6 8 11 8 12 13", 12}, /* 9 */
    {"M0 13L0 12M0 1L0 0", 0},                                               /* : */
    {"M1 13L1 12M1 1L1 0 0 -4", 1},                                          /* ; */
    {"M12 16L0 10 12 4", 12},                                                /* < */
    {"M0 13L12 13M0 7L12 7", 12},                                            /* = */
    {"M0 16L12 10 0 4", 12},                                                 /* > */
    {"M0 16Q1 20 5 20 10 20 10 15 10 12 7 10 5 9 5 6M5 1L5 0", 10},          /* ? */
    {"M14 12Q13 15 10 15 5 15 5 9 5 4 9 4 14 4 14 10L14 6Q15 4 17 4 20 5 20 10 20 20 10 "
     "20 0 20 0 9 0 -3 10 -3 14 -3 16 -1",
     20},                            /* @ */
    {"M0 0L7 20 14 0M3 7L11 7", 14}, /* A */
    {"M0 0L0 20 6 20Q11 20 11 15 11 11 6 11L0 11M6 11Q12 11 12 5 12 0 6 0L0 0",
     12},                                                                      /* B */
    {"M13 16Q11 20 7 20 0 20 0 10 0 0 7 0 11 0 13 4", 13},                     /* C */
    {"M0 0L0 20 5 20Q13 20 13 10 13 0 5 0L0 0", 13},                           /* D */
    {"M11 20L0 20 0 0 11 0M0 11L9 11", 11},                                    /* E */
    {"M10 20L0 20 0 0M0 11L8 11", 10},                                         /* F */
    {"M13 16Q11 20 7 20 0 20 0 10 0 0 7 0 14 0 14 7L14 9 8 9", 14},            /* G */
    {"M0 0L0 20M13 0L13 20M0 11L13 11", 13},                                   /* H */
    {"M0 0L0 20", 0},                                                          /* I */
    {"M8 20L8 5Q8 0 4 0 0 0 0 4", 8},                                          /* J */
    {"M0 0L0 20M12 20L0 8M4 12L12 0", 12},                                     /* K */
    {"M0 20L0 0 10 0", 10},                                                    /* L */
    {"M0 0L0 20 8 6 16 20 16 0", 16},                                          /* M */
    {"M0 0L0 20 13 0 13 20", 13},                                              /* N */
    {"M8 20Q15 20 15 10 15 0 8 0L7 0Q0 0 0 10 0 20 7 20L8 20", 15},            /* O */
    {"M0 0L0 20 6 20Q12 20 12 14 12 9 6 9L0 9", 12},                           /* P */
    {"M8 20Q15 20 15 10 15 0 8 0L7 0Q0 0 0 10 0 20 7 20L8 20M9 5L15 -2", 15},  /* Q */
    {"M0 0L0 20 6 20Q12 20 12 15 12 10 6 10L0 10M6 10L12 0", 12},              /* R */
    {"M12 16Q10 20 6 20 0 20 0 15 0 11 6 10 12 9 12 5 12 0 6 0 2 0 0 4", 12},  /* S */
    {"M0 20L14 20M7 20L7 0", 14},                                              /* T */
    {"M0 20L0 7Q0 0 6 0L7 0Q13 0 13 7L13 20", 13},                             /* U */
    {"M0 20L7 0 14 20", 14},                                                   /* V */
    {"M0 20L5 0 10 18 15 0 20 20", 20},                                        /* W */
    {"M0 0L13 20M0 20L13 0", 13},                                              /* X */
    {"M0 20L7 10 14 20M7 10L7 0", 14},                                         /* Y */
    {"M0 20L12 20 0 0 12 0", 12},                                              /* Z */
    {"M5 22L0 22 0 -4 5 -4", 5},                                               /* [ */
    {"M0 20L8 -2", 8},                                                         /* \ */
    {"M0 22L5 22 5 -4 0 -4", 5},                                               /* ] */
    {"M0 12L5 20 10 12", 10},                                                  /* ^ */
    {"M0 -3L12 -3", 12},                                                       /* _ */
    {"M0 21L4 17", 4},                                                         /* ` */
    {"M1 12Q3 14 6 14 11 14 11 9L11 0M11 8L6 8Q0 8 0 4 0 0 5 0 9 0 11 4", 11}, /* a */
    {"M0 20L0 0M0 7Q0 14 6 14 11 14 11 7 11 0 6 0 0 0 0 7", 11},               /* b */
    {"M10 11Q8 14 5 14 0 14 0 7 0 0 5 0 8 0 10 3", 10},                        /* c */
    {"M11 20L11 0M11 7Q11 14 5 14 0 14 0 7 0 0 5 0 11 0 11 7", 11},            /* d */
    {"M0 7L11 7Q11 14 6 14 0 14 0 7 0 0 6 0 9 0 11 3", 11},                    /* e */
    {"M7 20L6 20Q3 20 3 16L3 0M0 14L7 14", 7},                                 /* f */
    {"M11 14L11 -1Q11 -6 6 -6 2 -6 1 -4M11 7Q11 14 5 14 0 14 0 7 0 0 5 0 11 0 11 7",
     11},                                                                        /* g */
    {"M0 20L0 0M0 8Q0 14 6 14 10 14 10 9L10 0", 10},                             /* h */
    {"M0 14L0 0M0 19L0 20", 0},                                                  /* i */
    {"M3 14L3 -3Q3 -6 0 -6M3 19L3 20", 3},                                       /* j */
    {"M0 20L0 0M9 14L0 5M4 9L9 0", 9},                                           /* k */
    {"M0 20L0 3Q0 0 3 0", 3},                                                    /* l */
    {"M0 14L0 0M0 8Q0 14 5 14 8 14 8 9L8 0M8 9Q9 14 13 14 17 14 17 9L17 0", 17}, /* m */
    {"M0 14L0 0M0 8Q0 14 6 14 10 14 10 9L10 0", 10},                             /* n */
    {"M5 14Q0 14 0 7 0 0 5 0L6 0Q11 0 11 7 11 14 6 14L5 14", 11},                /* o */
    {"M0 14L0 -6M0 7Q0 14 6 14 11 14 11 7 11 0 6 0 0 0 0 7", 11},                /* p */
    {"M11 14L11 -6M11 7Q11 14 5 14 0 14 0 7 0 0 5 0 11 0 11 7", 11},             /* q */
    {"M0 14L0 0M0 8Q1 14 6 14", 6},                                              /* r */
    {"M9 11Q8 14 5 14 0 14 0 10 0 8 5 7 9 6 9 4 9 0 5 0 1 0 0 3", 9},            /* s */
    {"M3 18L3 4Q3 0 6 0L7 0M0 14L7 14", 7},                                      /* t */
    {"M0 14L0 5Q0 0 4 0 10 0 10 6M10 14L10 0", 10},                              /* u */
    {"M0 14L5 0 10 14", 10},                                                     /* v */
    {"M0 14L4 0 8 12 12 0 16 14", 16},                                           /* w */
    {"M0 0L10 14M0 14L10 0", 10},                                                /* x */
    {"M0 14L5 0M10 14L4 -4Q3 -6 0 -6", 10},                                      /* y */
    {"M0 14L9 14 0 0 9 0", 9},                                                   /* z */
    {"M6 22Q3 22 3 18L3 13Q3 9 0 9 3 9 3 5L3 0Q3 -4 6 -4", 6},                   /* { */
    {"M0 22L0 -4", 0},                                                           /* | */
    {"M0 22Q3 22 3 18L3 13Q3 9 6 9 3 9 3 5L3 0Q3 -4 0 -4", 6},                   /* } */
    {"M0 8Q3 13 6 10 9 7 12 12", 12},                                            /* ~ */
};

static const struct sign {
    uint32_t code;
    struct glyph glyph;
} signs[] = {
    {0xB0, {"M3 20Q6 20 6 17 6 14 3 14 0 14 0 17 0 20 3 20", 6}}, /* degree */
    {0xB1, {"M6 18L6 6M0 12L12 12M0 2L12 2", 12}},
    {0xB2, {"M0 17Q0 20 3 20 6 20 6 17 6 15 4 13L0 10 6 10", 6}},
    {0xB5, {"M0 14L0 -6M0 5Q0 0 4 0 10 0 10 6M10 14L10 0", 10}}, /* micro */
    {0xB7, {"M0 10L0 9", 0}},
    {0xD7, {"M1 15L11 5M1 5L11 15", 12}}, /* times */
    {0x2013, {"M0 8L12 8", 12}},
    {0x2014, {"M0 8L20 8", 20}},
    {0x2026, {"M0 1L0 0M7 1L7 0M14 1L14 0", 14}},
    {0x2192, {"M0 10L16 10M11 15L16 10 11 5", 16}},
    {0x2264, {"M12 18L0 12 12 6M0 1L12 1", 12}},
    {0x2265, {"M0 18L12 12 0 6M0 1L12 1", 12}},
    {0xFFFD, {BOX, 12}},
};

/* Letters from U+00C0 on without their accents; a space: none is near. */
static const char plain[] =
    "AAAAAAACEEEEIIIIDNOOOOO OUUUUYTsaaaaaaaceeeeiiiidnooooo ouuuuyty"
    "AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLl"
    "LlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";

uint32_t sw__glyph_of(uint32_t code)
{
    if (code >= FIRST && code <= LAST) {
        return code;
    }
    if (code == 0x3BC) { /* the Greek letter */
        return 0xB5;
    }
    if (code == 0xA0) { /* a space that does not break */
        return ' ';
    }
    if (code == 0x2018 || code == 0x2019) {
        return '\'';
    }
    if (code == 0x201C || code == 0x201D) {
        return '"';
    }
    if (code == 0x2212) { /* minus */
        return 0x2013;
    }
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (signs[i].code == code) {
            return code;
        }
    }
    if (code >= 0xC0 && code - 0xC0 < sizeof plain - 1 && plain[code - 0xC0] != ' ') {
        return (uint32_t)plain[code - 0xC0];
    }
    return 0xFFFD;
}

static const struct glyph *glyph_of(uint32_t code)
{
    code = sw__glyph_of(code);
    if (code <= LAST) {
        return &ascii[code - FIRST];
    }
    size_t i = 0;
    while (signs[i].code != code) { /* sw__glyph_of gives no others */
        i++;
    }
    return &signs[i].glyph;
}

/* Characters that we only draw as a box are as wide as they are elsewhere, for SVG shows them. */
double sw__glyph_advance(uint32_t code)
{
    if (sw__glyph_of(code) == 0xFFFD) {
        return 0.6 * sw__utf8_columns(code);
    }
    return (glyph_of(code)->width + SPACING) / SW__EM;
}

/* Reads a whole number, which may be negative. */
static int number(const char **at)
{
    while (**at == ' ') {
        (*at)++;
    }
    const int sign = **at == '-' ? -1 : 1;
    *at += sign < 0;
    int value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (**at - '0');
    }
    return sign * value;
}

#define CURVE_PIECES 8

void sw__glyph_strokes(uint32_t code,
                       void (*line)(void *arg, double x0, double y0, double x1,
                                    double y1),
                       void *arg)
{
    if (sw__glyph_of(code) == 0xFFFD && sw__utf8_columns(code) == 0) {
        return; /* accents that combine */
    }
    const char *at = glyph_of(code)->path;
    char command = 'M';
    double x = 0, y = 0;
    const double left = SPACING / 2;
    while (*at) {
        if (*at >= 'A' && *at <= 'Z') {
            command = *at++;
        }
        const int first = number(&at);
        const int second = number(&at);
        if (command == 'Q') {
            const double end_x = number(&at);
            const double end_y = number(&at);
            double from_x = x, from_y = y;
            for (int i = 1; i <= CURVE_PIECES; i++) {
                const double t = (double)i / CURVE_PIECES, s = 1 - t;
                const double to_x = s * s * x + 2 * s * t * first + t * t * end_x;
                const double to_y = s * s * y + 2 * s * t * second + t * t * end_y;
                line(arg, (from_x + left) / SW__EM, from_y / SW__EM,
                     (to_x + left) / SW__EM, to_y / SW__EM);
                from_x = to_x;
                from_y = to_y;
            }
            x = end_x;
            y = end_y;
            continue;
        }
        if (command == 'L') {
            line(arg, (x + left) / SW__EM, y / SW__EM, (first + left) / SW__EM,
                 second / SW__EM);
        }
        x = first;
        y = second;
        command = 'L';
    }
}
