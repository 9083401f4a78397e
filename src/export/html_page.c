#include "export/html_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/training.h>

#include "export/text_page.h"

void sw__html_text_n(sw_writer *w, const char *bytes, size_t length)
{
    sw_writer *visible = sw_writer_to_memory();
    if (!visible) {
        return;
    }
    sw_write_visible(visible, bytes, length, 0, false);
    size_t rest = 0;
    const char *text = sw_writer_text(visible, &rest);
    while (text && rest > 0) {
        const size_t plain = strcspn(text, "&<>\"'\xEF");
        sw_write_bytes(w, text, plain);
        text += plain;
        rest -= plain;
        if (rest >= 3 && *text == '\xEF') {
            /* U+FFFE and U+FFFF are no characters, and XML does not allow them. */
            const bool none = text[1] == '\xBF' && (unsigned char)text[2] >= 0xBE;
            sw_write_bytes(w, none ? "\xEF\xBF\xBD" : text, 3);
            text += 3;
            rest -= 3;
        } else if (rest > 0) {
            sw_write_text(w, *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : "&#39;");
            text++;
            rest--;
        }
    }
    sw_writer_close(visible, NULL);
}

void sw__html_text(sw_writer *w, const char *text)
{
    if (text) {
        sw__html_text_n(w, text, strlen(text));
    }
}

void sw__html_section_begin(sw_writer *w, const char *id, const char *title)
{
    sw_write_format(w, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void sw__html_section_end(sw_writer *w)
{
    sw_write_text(w, "</section>\n");
}

void sw__html_table_begin(sw_writer *w, const char *const *headers, size_t count)
{
    sw_write_text(w, "<div class=\"scroll\"><table>\n<thead><tr>");
    for (size_t i = 0; i < count; i++) {
        if (headers[i][0] == '>') {
            sw_write_format(w, "<th class=\"n\">%s</th>", headers[i] + 1);
        } else {
            sw_write_format(w, "<th>%s</th>", headers[i]);
        }
    }
    sw_write_text(w, "</tr></thead>\n<tbody>\n");
}

void sw__html_table_end(sw_writer *w)
{
    sw_write_text(w, "</tbody></table></div>\n");
}

void sw__html_row_begin(sw_writer *w)
{
    sw_write_text(w, "<tr>");
}

void sw__html_row_end(sw_writer *w)
{
    sw_write_text(w, "</tr>\n");
}

void sw__html_cell(sw_writer *w, const char *text)
{
    /* Long ones may break anywhere, and then need some width. */
    sw_write_text(w, text && strlen(text) > 40 ? "<td class=\"w\">" : "<td>");
    sw__html_text(w, text && *text ? text : "-");
    sw_write_text(w, "</td>");
}

void sw__html_number(sw_writer *w, const char *text)
{
    sw_write_text(w, "<td class=\"n\">");
    sw__html_text(w, text && *text ? text : "-");
    sw_write_text(w, "</td>");
}

void sw__html_count(sw_writer *w, uint64_t count)
{
    char text[32];
    sw_text_count(text, count);
    sw__html_number(w, count == SW_UNKNOWN ? NULL : text);
}

void sw__html_duration(sw_writer *w, double ns)
{
    char text[24];
    sw_text_duration(text, ns, false);
    sw__html_number(w, isnan(ns) ? NULL : text);
}

void sw__html_ns(sw_writer *w, uint64_t ns)
{
    sw__html_duration(w, ns == SW_UNKNOWN ? NAN : (double)ns);
}

void sw__html_percent(sw_writer *w, double share)
{
    char text[SW__CELL] = "-";
    if (isfinite(share) && share >= 0 && share < 1e6) {
        sw__text_percent(text, sizeof text, (uint64_t)(share * 1e9 + 0.5), 1000000000);
    }
    sw__html_number(w, text);
}

void sw__html_name(sw_writer *w, const char *bytes, size_t length, unsigned depth)
{
    sw_write_format(w, "<td class=\"t\" style=\"padding-left:%uem\">",
                    depth < 12 ? depth : 12);
    sw__html_text_n(w, length ? bytes : "(no name)", length ? length : 9);
    sw_write_text(w, "</td>");
}

void sw__html_place(sw_writer *w, const char *file, uint32_t line)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    sw_write_text(w, "<td><code>");
    sw__html_text(w, slash ? slash + 1 : file ? file : "-");
    if (file && line) {
        sw_write_format(w, ":%u", line);
    }
    sw_write_text(w, "</code></td>");
}

void sw__html_more(sw_writer *w, size_t hidden, const char *what)
{
    if (hidden > 0) {
        char text[32];
        sw_text_count(text, hidden);
        sw_write_format(w, "<p class=\"dim\">… %s more %s; report.json has all.</p>\n",
                        text, what);
    }
}
