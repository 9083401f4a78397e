/* Charts: what they show is in the image, whatever names and values there are, and both forms can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stepwatch/chart.h>
#include <stepwatch/tensorboard.h>

#include "base/deflate.h"
#include "export/chart.h"
#include "export/stroke_font.h"
#include "png_reader.h"

#define HOSTILE "<script>&\"'\x1b[31m\xff\xfe\xe2\x80\xae\xef\xbf\xbf\n]]>-->"

/* --- compression and check sums --- */

static void check_sums_are_those_of_the_standards(void **state)
{
    (void)state;
    assert_int_equal(sw__crc(SW__CRC32, 0, "123456789", 9), 0xCBF43926u);
    assert_int_equal(sw__crc(SW__CRC32C, 0, "123456789", 9), 0xE3069283u);
    const uint32_t first = sw__crc(SW__CRC32C, 0, "1234", 4);
    assert_int_equal(sw__crc(SW__CRC32C, first, "56789", 5), 0xE3069283u);
}

static void round_trip(const uint8_t *data, size_t length)
{
    sw_writer *writer = sw_writer_to_memory();
    size_t packed, out_length = 0;
    assert_int_equal(sw__deflate(writer, data, length), SW_OK);
    const char *bytes = sw_writer_text(writer, &packed);
    uint8_t *out = inflate_zlib(bytes, packed, &out_length);
    assert_non_null(out);
    assert_int_equal(out_length, length);
    assert_memory_equal(out, data, length);
    free(out);
    sw_writer_close(writer, NULL);
}

static void what_is_packed_can_be_unpacked(void **state)
{
    (void)state;
    static const size_t lengths[] = {0,   1,   2,     3,     4,     257,   258,
                                     259, 260, 32767, 32768, 32769, 300000};
    uint8_t *data = malloc(300000);
    for (unsigned kind = 0; kind < 4; kind++) {
        uint32_t seed = 7;
        for (size_t i = 0; i < 300000; i++) {
            seed = seed * 1664525u + 1013904223u;
            data[i] = (uint8_t)(kind == 0   ? 0
                                : kind == 1 ? seed >> 24
                                : kind == 2 ? i % 251
                                            : (seed >> 28) * (i / 1000 % 2));
        }
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            round_trip(data, lengths[i]);
        }
    }
    free(data);
}

/* Frequencies of a Fibonacci series make words longer than the format allows. */
static void words_are_never_too_long(void **state)
{
    (void)state;
    uint8_t *data = malloc(200000);
    size_t used = 0, often = 1, before = 1;
    for (unsigned byte = 0; byte < 24 && used < 200000; byte++) {
        for (size_t i = 0; i < often && used < 200000; i++) {
            data[used++] = (uint8_t)(byte * 7 + 1);
        }
        const size_t next = often + before;
        before = often;
        often = next;
    }
    /* Mixed, so that few repeat. */
    uint32_t seed = 3;
    for (size_t i = used - 1; i > 0; i--) {
        seed = seed * 1664525u + 1013904223u;
        const size_t other = seed % (i + 1);
        const uint8_t byte = data[i];
        data[i] = data[other];
        data[other] = byte;
    }
    round_trip(data, used);
    free(data);
}

/* --- numbers --- */

static void check_value(double value, const char *unit, const char *expected)
{
    char text[SW__VALUE];
    sw__chart_value(text, value, unit);
    assert_string_equal(text, expected);
}

static void values_have_units_that_fit(void **state)
{
    (void)state;
    check_value(0.0123, "s", "12.3 ms");
    check_value(3.41e-6, "s", "3.41 µs");
    check_value(5e-10, "s", "0.5 ns");
    check_value(250, "s", "250 s");
    check_value(5400, "s", "90 min");
    check_value(-0.25, "s", "-250 ms");
    check_value(0, "s", "0 s");
    check_value(1500, "ms", "1.5 s");
    check_value(1536, "B", "1.5 KiB");
    check_value(3.0 * (1 << 30), "B", "3 GiB");
    check_value(1234567, "calls", "1,234,567 calls");
    check_value(42.25, "%", "42.3 %");
    check_value(12.345, NULL, "12.3");
    check_value(1e20, NULL, "1e+20");
    check_value(-2.5e-7, NULL, "-2.5e-7");
    check_value(NAN, "s", "no value");
    check_value(INFINITY, "s", "no value");
}

static void ticks_are_round(void **state)
{
    (void)state;
    struct sw__axis axis;
    sw__axis_linear(&axis, 0, 0.0105, "s", 6, false);
    assert_string_equal(axis.unit, "ms");
    assert_int_equal(axis.count, 6);
    assert_string_equal(axis.text[0], "0");
    assert_string_equal(axis.text[5], "10");
    sw__axis_linear(&axis, 0, 5, NULL, 12, true);
    assert_string_equal(axis.text[1], "1");
    sw__axis_linear(&axis, 0, 600e6, "B", 5, false);
    assert_string_equal(axis.unit, "MiB");
    assert_string_equal(axis.text[1], "128");
    sw__axis_linear(&axis, 7, 7, NULL, 5, false);
    assert_true(axis.low < 7 && axis.high > 7 && axis.count >= 1);
    sw__axis_log(&axis, 2e-5, 3, "s");
    assert_int_equal(axis.count, 5);
    assert_string_equal(axis.text[0], "100 µs");
    assert_string_equal(axis.text[4], "1 s");
    assert_true(fabs(sw__axis_at(&axis, 3) - 1) < 1e-9);
    assert_true(sw__axis_at(&axis, 0) == 0);
    /* A small part of it: tenths, not binary fractions. */
    sw__axis_linear(&axis, 313.75 * 0x1p20, 313.77 * 0x1p20, "B", 5, false);
    assert_string_equal(axis.text[0], "313.750");
    assert_string_equal(axis.text[1], "313.755");
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    /* Where there is such a locale; the digits come from integers in any case. */
    (void)setlocale(LC_ALL, "de_DE.UTF-8");
    check_value(1.5, "s", "1.5 s");
    (void)setlocale(LC_ALL, "C");
}

static void ranking_is_by_weight_then_order(void **state)
{
    (void)state;
    const double weight[] = {1, 5, NAN, 5, -2, 9};
    static const size_t expected[] = {5, 1, 3, 0, 4, 2};
    size_t *order = sw__chart_ranking(weight, 6);
    assert_memory_equal(order, expected, sizeof expected);
    free(order);
}

/* --- images --- */

static char *image(const sw_chart *const *charts, size_t count,
                   enum sw_chart_format format, size_t *length)
{
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_charts_write(writer, format, charts, count, NULL, NULL), SW_OK);
    const char *text = sw_writer_text(writer, length);
    char *copy = malloc(*length + 1);
    memcpy(copy, text, *length + 1);
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    return copy;
}

static sw_chart *create(const sw_chart_options *options)
{
    sw_chart *chart;
    assert_int_equal(sw_chart_create(&chart, options, NULL), SW_OK);
    return chart;
}

/* Tags of an SVG file open and close in order, and nothing in it is markup of a name. */
static void check_svg(const char *text, size_t length)
{
    size_t open = 0;
    assert_int_equal(strlen(text), length);
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        if (at[1] == '/') {
            assert_true(open > 0);
            open--;
        } else if (end[-1] != '/') {
            open++;
        }
        assert_true(strncmp(at + 1, "svg", 3) == 0 || strncmp(at + 1, "/svg", 4) == 0 ||
                    strncmp(at + 1, "rect", 4) == 0 || strncmp(at + 1, "path", 4) == 0 ||
                    strncmp(at + 1, "text", 4) == 0 || strncmp(at + 1, "/text", 5) == 0);
    }
    assert_int_equal(open, 0);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        assert_true(*at >= 0x20 || *at == '\n');
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf "));
    assert_null(strstr(text, "\xef\xbf\xbf"));
}

static void check_both(const sw_chart *chart)
{
    size_t length;
    struct png png;
    char *svg = image(&chart, 1, SW_CHART_SVG, &length);
    check_svg(svg, length);
    free(svg);
    svg = image(&chart, 1, SW_CHART_SVG_INLINE, &length);
    check_svg(svg, length);
    free(svg);
    char *bytes = image(&chart, 1, SW_CHART_PNG, &length);
    assert_true(png_read(&png, bytes, length));
    free(png.pixels);
    free(bytes);
}

static size_t pixels_of(const struct png *png, uint32_t colour)
{
    size_t count = 0;
    for (size_t i = 0; i < png->width * png->height; i++) {
        const uint8_t *at = png->pixels + 3 * i;
        count += ((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]) == colour;
    }
    return count;
}

/* Bars are as long as their values say, in pixels that are counted. */
static void bars_are_as_long_as_their_values(void **state)
{
    (void)state;
    size_t areas[2], length;
    for (int i = 0; i < 2; i++) {
        sw_chart *chart = create(&(sw_chart_options){
            .kind = SW_CHART_BARS, .title = "t", .width = 600, .height = 300});
        assert_int_equal(sw_chart_add_bar(chart, "half", 4, NULL, 0, i ? 50 : 100),
                         SW_OK);
        assert_int_equal(sw_chart_add_bar(chart, "full", 4, NULL, 0, 100), SW_OK);
        const sw_chart *one = chart;
        struct png png;
        char *bytes = image(&one, 1, SW_CHART_PNG, &length);
        assert_true(png_read(&png, bytes, length));
        assert_int_equal(png.width, 1200);
        assert_int_equal(png.height, 600);
        areas[i] = pixels_of(&png, sw__ink_colour(SW__INK_SERIES));
        free(png.pixels);
        free(bytes);
        sw_chart_free(chart);
    }
    /* Two whole bars against one and a half. */
    const double ratio = (double)areas[1] / (double)areas[0];
    assert_true(areas[0] > 10000);
    assert_true(ratio > 0.74 && ratio < 0.76);
}

static void same_data_same_bytes(void **state)
{
    (void)state;
    const double values[] = {1, 2, 2, 3, 3, 3, 9};
    size_t first_length, second_length;
    sw_chart *chart =
        create(&(sw_chart_options){.kind = SW_CHART_HISTOGRAM, .title = "x"});
    sw_chart_add_values(chart, "a", 1, values, 7);
    const sw_chart *charts[] = {chart, chart};
    char *first = image(charts, 2, SW_CHART_PNG, &first_length);
    char *second = image(charts, 2, SW_CHART_PNG, &second_length);
    assert_int_equal(first_length, second_length);
    assert_memory_equal(first, second, first_length);
    free(first);
    free(second);
    sw_chart_free(chart);
}

static void names_are_escaped_and_shortened(void **state)
{
    (void)state;
    char name[300];
    size_t length;
    memset(name, 'm', sizeof name);
    memcpy(name, "begin_", 6);
    memcpy(name + sizeof name - 4, "_end", 4);
    sw_chart *chart = create(&(sw_chart_options){
        .kind = SW_CHART_BARS, .title = "a < b & \"c\"", .empty = "x"});
    sw_chart_add_bar(chart, name, sizeof name, NULL, 0, 1);
    sw_chart_add_bar(chart, HOSTILE, sizeof HOSTILE - 1, NULL, 0, 2);
    const sw_chart *one = chart;
    char *svg = image(&one, 1, SW_CHART_SVG, &length);
    check_svg(svg, length);
    assert_non_null(strstr(svg, "a &lt; b &amp; &quot;c&quot;"));
    assert_non_null(strstr(svg, "&lt;script&gt;"));
    assert_non_null(strstr(svg, ">begin_"));
    assert_non_null(strstr(svg, "_end</text>"));
    assert_non_null(strstr(svg, "…"));
    free(svg);
    sw_chart_free(chart);
}

static void nothing_is_said_with_its_reason(void **state)
{
    (void)state;
    for (int kind = SW_CHART_HISTOGRAM; kind <= SW_CHART_BARS; kind++) {
        size_t length;
        sw_chart *chart = create(&(sw_chart_options){.kind = (enum sw_chart_kind)kind,
                                                     .empty = "Nobody looked."});
        const sw_chart *one = chart;
        char *svg = image(&one, 1, SW_CHART_SVG, &length);
        assert_non_null(strstr(svg, ">no data<"));
        assert_non_null(strstr(svg, ">Nobody looked.<"));
        free(svg);
        check_both(chart);
        sw_chart_free(chart);
    }
}

static void many_series_have_others(void **state)
{
    (void)state;
    const double x[] = {0, 1}, y[] = {1, 2};
    size_t length;
    sw_chart *lines = create(&(sw_chart_options){.kind = SW_CHART_LINES, .top = 3});
    sw_chart *bars =
        create(&(sw_chart_options){.kind = SW_CHART_BARS, .top = 3, .sum_others = true});
    sw_chart *histogram =
        create(&(sw_chart_options){.kind = SW_CHART_HISTOGRAM, .top = 3});
    for (int i = 0; i < 10; i++) {
        char name[16];
        const size_t used = (size_t)snprintf(name, sizeof name, "n%d", i);
        sw_chart_add_line(lines, name, used, x, y, 2);
        sw_chart_add_bar(bars, name, used, NULL, 0, 10 - i);
        sw_chart_add_values(histogram, name, used, y, 2);
    }
    const sw_chart *charts[] = {lines, bars, histogram};
    for (size_t i = 0; i < 3; i++) {
        char *svg = image(&charts[i], 1, SW_CHART_SVG, &length);
        assert_non_null(strstr(svg, ">others (7)<"));
        assert_non_null(strstr(svg, ">n0<"));
        assert_null(strstr(svg, ">n9<"));
        free(svg);
    }
    char *svg = image(&charts[1], 1, SW_CHART_SVG, &length);
    assert_non_null(strstr(svg, ">28<")); /* 7 + 6 + … + 1 */
    free(svg);
    sw_chart_free(lines);
    sw_chart_free(bars);
    sw_chart_free(histogram);
}

/* --- hostile input --- */

static double hostile_value(unsigned kind, size_t i)
{
    static const double values[] = {
        NAN,  INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, DBL_MIN, -1e-320, 0,
        -0.0, 1e300,    -1e300,    1,       -1,       1e-9,    1e15,    0.1};
    const size_t count = sizeof values / sizeof values[0];
    if (kind < count) {
        return values[kind]; /* always the same */
    }
    return values[(i * 7 + kind) % count];
}

static void fill(sw_chart *chart, enum sw_chart_kind kind, unsigned values, size_t count)
{
    double *x = calloc(count + 1, sizeof *x), *y = calloc(count + 1, sizeof *y);
    for (size_t i = 0; i < count; i++) {
        x[i] = values % 2 ? (double)i : hostile_value(values + 3, i);
        y[i] = hostile_value(values, i);
    }
    const char *const names[] = {"", HOSTILE, "name"};
    for (size_t n = 0; n < 3; n++) {
        if (kind == SW_CHART_HISTOGRAM) {
            assert_int_equal(
                sw_chart_add_values(chart, names[n], strlen(names[n]), y, count), SW_OK);
        } else if (kind == SW_CHART_BARS) {
            for (size_t i = 0; i < count; i++) {
                char name[48];
                const int used = snprintf(name, sizeof name, "%s%zu", names[n], i);
                assert_int_equal(sw_chart_add_bar(chart, name, (size_t)used,
                                                  n ? names[n] : NULL, strlen(names[n]),
                                                  y[i]),
                                 SW_OK);
            }
        } else {
            assert_int_equal(
                sw_chart_add_line(chart, names[n], strlen(names[n]), x, y, count), SW_OK);
        }
    }
    free(x);
    free(y);
}

static void hostile_data_makes_charts(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 50};
    for (int kind = SW_CHART_HISTOGRAM; kind <= SW_CHART_BARS; kind++) {
        for (unsigned values = 0; values < 20; values++) {
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                sw_chart *chart = create(
                    &(sw_chart_options){.kind = (enum sw_chart_kind)kind,
                                        .title = values % 3 ? HOSTILE : NULL,
                                        .x_unit = values % 2 ? "s" : "B",
                                        .y_unit = values % 2 ? HOSTILE : "s",
                                        .x_label = HOSTILE,
                                        .scale = (enum sw_chart_scale)(values % 3),
                                        .split = (enum sw_chart_split)(values / 3 % 3),
                                        .bins = values % 4 == 3 ? 100000 : 0,
                                        .width = values % 5 == 4 ? 160 : 400,
                                        .height = values % 5 == 4 ? 160 : 300});
                fill(chart, (enum sw_chart_kind)kind, values, counts[c]);
                check_both(chart);
                sw_chart_free(chart);
            }
        }
    }
}

/* Numbers of which hardly a digit is left, on every kind of axis. */
static void tiny_values_are_drawn(void **state)
{
    (void)state;
    static const double tiny[] = {5e-324, 1e-310, 3e-308, 0, 1};
    static const size_t count = sizeof tiny / sizeof tiny[0];
    for (size_t from = 0; from < count; from++) {
        for (size_t to = from; to < count; to++) {
            const double two[] = {tiny[from], tiny[to]};
            for (int scale = SW_SCALE_AUTO; scale <= SW_SCALE_LOG; scale++) {
                sw_chart *chart =
                    create(&(sw_chart_options){.kind = SW_CHART_HISTOGRAM,
                                               .x_unit = "s",
                                               .scale = (enum sw_chart_scale)scale,
                                               .width = 160,
                                               .height = 160});
                assert_int_equal(sw_chart_add_values(chart, "x", 1, two, 2), SW_OK);
                check_both(chart);
                sw_chart_free(chart);
            }
            for (int kind = SW_CHART_LINES; kind <= SW_CHART_AREAS; kind++) {
                sw_chart *chart =
                    create(&(sw_chart_options){.kind = (enum sw_chart_kind)kind,
                                               .y_unit = "B",
                                               .width = 160,
                                               .height = 160});
                assert_int_equal(sw_chart_add_line(chart, "x", 1, two, two, 2), SW_OK);
                check_both(chart);
                sw_chart_free(chart);
            }
        }
    }
}

static void many_values_are_drawn(void **state)
{
    (void)state;
    for (int kind = SW_CHART_HISTOGRAM; kind <= SW_CHART_BARS; kind++) {
        sw_chart *chart = create(&(sw_chart_options){.kind = (enum sw_chart_kind)kind});
        fill(chart, (enum sw_chart_kind)kind, 17, 100000);
        check_both(chart);
        sw_chart_free(chart);
    }
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    sw_chart *chart;
    sw_error_info info;
    const double one = 1;
    assert_int_equal(sw_chart_create(&chart,
                                     &(sw_chart_options){.kind = (enum sw_chart_kind)9},
                                     &info),
                     SW_EINVAL);
    assert_null(chart);
    assert_int_equal(sw_chart_create(&chart, &(sw_chart_options){.width = 1e9}, &info),
                     SW_EINVAL);
    assert_non_null(strstr(info.message, "between"));
    chart = create(&(sw_chart_options){.kind = SW_CHART_BARS});
    assert_int_equal(sw_chart_add_values(chart, "", 0, &one, 1), SW_EINVAL);
    assert_int_equal(sw_chart_add_line(chart, "", 0, &one, &one, 1), SW_EINVAL);
    int last = SW_OK;
    for (int i = 0; i < 65; i++) {
        char group[16];
        const int used = snprintf(group, sizeof group, "g%d", i);
        last = sw_chart_add_bar(chart, "a", 1, group, (size_t)used, 1);
    }
    assert_int_equal(last, SW_ELIMIT);
    check_both(chart);
    assert_int_equal(sw_charts_write(NULL, SW_CHART_SVG, NULL, 0, NULL, &info),
                     SW_EINVAL);
    sw_chart_free(chart);
    sw_chart_free(NULL);
}

/* --- the font --- */

static void count_strokes(void *arg, double x0, double y0, double x1, double y1)
{
    (*(size_t *)arg)++;
    assert_true(fmin(x0, x1) >= 0 && fmax(x0, x1) <= 1);
    assert_true(fmin(y0, y1) >= -0.3 && fmax(y0, y1) <= 0.85);
}

static void every_printable_character_has_strokes(void **state)
{
    (void)state;
    for (uint32_t code = 0x20; code < 0x7F; code++) {
        size_t strokes = 0;
        sw__glyph_strokes(code, count_strokes, &strokes);
        assert_true(code == ' ' ? strokes == 0 : strokes > 0);
        assert_int_equal(sw__glyph_of(code), code);
        assert_true(sw__glyph_advance(code) > 0);
    }
    assert_int_equal(sw__glyph_of(0xE9), 'e');
    assert_int_equal(sw__glyph_of(0x17E), 'z');
    assert_int_equal(sw__glyph_of(0x3BC), 0xB5);
    assert_int_equal(sw__glyph_of(0x65E5), 0xFFFD);
}

/* --- event files --- */

static void records_have_their_check_sums(void **state)
{
    (void)state;
    char folder[] = "/tmp/stepwatch-events-XXXXXX";
    assert_non_null(mkdtemp(folder));
    sw_events *events;
    sw_error_info info = {0};
    assert_int_equal(sw_events_create(&events, folder, &info), SW_OK);
    char path[512];
    snprintf(path, sizeof path, "%s", sw_events_path(events));
    assert_non_null(strstr(path, "/events.out.tfevents."));
    const sw_event_time time = {7, 1e9};
    assert_int_equal(sw_events_scalar(events, "loss\xff", time, 0.25, &info), SW_OK);
    assert_int_equal(sw_events_image(events, "bad", time, "GIF89a", 6, &info), SW_EINVAL);
    uint8_t data[4096];
    FILE *file = fopen(path, "rb"); /* before it is closed: every event is there */
    const size_t length = fread(data, 1, sizeof data, file);
    fclose(file);
    size_t at = 0, records = 0;
    while (at + 16 <= length) {
        const size_t size = data[at] | (size_t)data[at + 1] << 8;
        const uint32_t plain = sw__crc(SW__CRC32C, 0, data + at + 12, size);
        const uint32_t masked = (plain >> 15 | plain << 17) + 0xA282EAD8u;
        const uint8_t *sum = data + at + 12 + size;
        assert_true(at + 16 + size <= length);
        assert_int_equal(sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 |
                             (uint32_t)sum[3] << 24,
                         masked);
        if (records == 1) { /* wall time, step 7, a summary with the tag and 0.25 */
            static const uint8_t step[] = {0x10, 0x07};
            static const uint8_t value[] = {0x0A, 0x07, 'l',  'o',  's',  's',  0xEF,
                                            0xBF, 0xBD, 0x15, 0x00, 0x00, 0x80, 0x3E};
            assert_memory_equal(data + at + 12 + 9, step, sizeof step);
            assert_memory_equal(data + at + 12 + size - sizeof value, value,
                                sizeof value);
        }
        records++;
        at += 16 + size;
    }
    assert_int_equal(at, length);
    assert_int_equal(records, 2);
    assert_int_equal(sw_events_close(events, &info), SW_OK);
    assert_int_equal(sw_events_close(NULL, &info), SW_OK);
    unlink(path);
    rmdir(folder);
    assert_int_equal(sw_events_create(&events, "/dev/null/x", &info), SW_EWRITE);
    assert_null(events);
    assert_non_null(strstr(info.message, "/dev/null/x"));
}

/* Half a record would make all that follow it unreadable. */
static void a_record_without_room_leaves_nothing(void **state)
{
    (void)state;
    char folder[] = "/tmp/stepwatch-events-XXXXXX", path[512];
    const sw_event_time time = {7, 1e9};
    struct rlimit usual, little;
    struct stat before, after;
    sw_events *events;
    sw_error_info info = {0};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(sw_events_create(&events, folder, &info), SW_OK);
    snprintf(path, sizeof path, "%s", sw_events_path(events));
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    little = usual;
    little.rlim_cur = (rlim_t)before.st_size + 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(sw_events_scalar(events, "loss", time, 0.25, &info), SW_ENOSPACE);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(sw_events_scalar(events, "loss", time, 0.25, &info), SW_OK);
    assert_int_equal(sw_events_close(events, &info), SW_ENOSPACE); /* one is missing */
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_sums_are_those_of_the_standards),
        cmocka_unit_test(what_is_packed_can_be_unpacked),
        cmocka_unit_test(words_are_never_too_long),
        cmocka_unit_test(values_have_units_that_fit),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(ranking_is_by_weight_then_order),
        cmocka_unit_test(bars_are_as_long_as_their_values),
        cmocka_unit_test(same_data_same_bytes),
        cmocka_unit_test(names_are_escaped_and_shortened),
        cmocka_unit_test(nothing_is_said_with_its_reason),
        cmocka_unit_test(many_series_have_others),
        cmocka_unit_test(hostile_data_makes_charts),
        cmocka_unit_test(tiny_values_are_drawn),
        cmocka_unit_test(many_values_are_drawn),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(every_printable_character_has_strokes),
        cmocka_unit_test(records_have_their_check_sums),
        cmocka_unit_test(a_record_without_room_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
