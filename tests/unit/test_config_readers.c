/* The readers of TOML and YAML: what they find in our part, and what they step over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/reader.h"

/* "LINE KEY=VALUE;" of every entry; lists are "KEY[]" and "KEY+=VALUE", nothing is "KEY~". Mistakes are "!LINE;". */
static char told[65536];
static char mistakes[65536];

static void add(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *out, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, sizeof told - used, format, arguments);
    va_end(arguments);
}

static void put(void *arg, const struct sw__config_entry *entry)
{
    assert_ptr_equal(arg, told);
    add(told, "%u %s", entry->line, entry->key);
    if (entry->kind == SW__CONFIG_SCALAR) {
        add(told, "%s%s;", entry->element ? "+=" : "=", entry->value);
    } else {
        assert_string_equal(entry->value, "");
        add(told, "%s;", entry->kind == SW__CONFIG_LIST ? "[]" : "~");
    }
}

static void complain(void *arg, unsigned line, const char *sentence)
{
    assert_ptr_equal(arg, told);
    assert_true(strlen(sentence) > 10);
    add(told, "!%u;", line);
    add(mistakes, "%u: %s\n", line, sentence);
}

static const struct sw__config_sink sink = {put, complain, told};

typedef bool reader(const char *text, size_t length, const char *part,
                    const struct sw__config_sink *to);

/* The text lies at the end of its memory, so that tools see a read beyond it. */
static bool read_text(reader *read, const char *part, const char *text)
{
    size_t length = strlen(text);
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    told[0] = '\0';
    mistakes[0] = '\0';
    bool found = read(copy, length, part, &sink);
    free(copy);
    return found;
}

static void expect(reader *read, const char *part, const char *text, bool found,
                   const char *expected)
{
    bool was = read_text(read, part, text);
    if (strcmp(told, expected) != 0 || was != found) {
        fail_msg("%s\ngave %d %s\nnot %s\n%s", text, was, told, expected, mistakes);
    }
}

static void toml_values(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"", ""},
        {"# only a comment", ""},
        {"max_mb = 12", "1 max_mb=12;"},
        {"max_mb=1_000.5 # why\n", "1 max_mb=1000.5;"},
        {"\n\nenabled = false\r\nquiet=true", "3 enabled=false;4 quiet=true;"},
        {"name = \"a \\\"b\\\" \\u00e9\\t\\\\ # no comment\"",
         "1 name=a \"b\" \xC3\xA9\t\\ # no comment;"},
        {"name = 'C:\\x # y'", "1 name=C:\\x # y;"},
        {"name = \"\"", "1 name=;"},
        {"name = \"\"\"\nline\nnext \\\n   joined\"\"\"\"\nout='o'",
         "1 name=line\nnext joined\";5 out=o;"},
        {"name = '''a'b''c'''", "1 name=a'b''c;"},
        {"lines = []", "1 lines[];"},
        {"lines = [ 'a:b' , # one\n \"c:d\",\n]\nout = 'x'",
         "1 lines[];1 lines+=a:b;2 lines+=c:d;4 out=x;"},
        {"schedule = { wait = 1, active = 3 }", "1 schedule.wait=1;1 schedule.active=3;"},
        {"schedule.wait = 1\n\"schedule\" . 'active'=2",
         "1 schedule.wait=1;2 schedule.active=2;"},
        {"[schedule]\nwait = 1\n[other]\nx=2", "2 schedule.wait=1;4 other.x=2;"},
        {"when = 1979-05-27 07:32:00Z", "1 when=1979-05-27 07:32:00Z;"},
        {"when = 1979-05-27 # a day", "1 when=1979-05-27;"},
        {"when = 07:32:00.99", "1 when=07:32:00.99;"},
        {"x = +inf\ny = -0x1F\nz = 1e6", "1 x=+inf;2 y=-0x1F;3 z=1e6;"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect(sw__toml_read, "", table[i][0], true, table[i][1]);
    }
}

static void toml_mistakes(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"max_mb 12", "!1;"},
        {"max_mb =\nout = 'x'", "!1;2 out=x;"},
        {"max_mb = 1 2\nout = 'x'", "1 max_mb=1;!1;2 out=x;"},
        {"name = \"open\nout = 'x'", "!1;2 out=x;"},
        {"name = \"\"\"open\nout = 'x'", "!1;"},
        {"name = \"\\q\"\nout = 'x'", "!1;2 out=x;"},
        {"name = \"\\uD800\"", "!1;"},
        {"name = \"\\u12\"", "!1;"},
        {"name = \"\\u0000\"", "!1;"},
        {"lines = ['a'", "1 lines[];1 lines+=a;!1;"},
        {"lines = ['a' 'b']\nout='x'", "1 lines[];1 lines+=a;!1;2 out=x;"},
        {"lines = [['a']]", "1 lines[];!1;"},
        {"lines = [{a=1}]", "1 lines[];!1;"},
        {"schedule = {wait=1", "1 schedule.wait=1;!1;"},
        {"[[x]]\ny=1\n[z]\na=1", "!1;2 x.y=1;4 z.a=1;"},
        {"= 3", "!1;"},
        {"a..b = 3", "!1;"},
        {"]", "!1;"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect(sw__toml_read, "", table[i][0], true, table[i][1]);
    }
    /* Nested too deeply for any stack, and too long for any option. */
    static char deep[200000] = "x = ";
    memset(deep + 4, '[', sizeof deep - 5);
    expect(sw__toml_read, "", deep, true, "1 x[];!1;");
    static char text[8000] = "name = \"";
    memset(text + 8, 'n', sizeof text - 10);
    text[sizeof text - 2] = '"';
    expect(sw__toml_read, "", text, true, "!1;");
    memset(text, 'k', 300);
    memcpy(text + 300, " = 1", 5);
    expect(sw__toml_read, "", text, true, "!1;");
}

static void a_real_pyproject(void **state)
{
    (void)state;
    static const char text[] =
        "[build-system]\n"
        "requires = [\"meson-python>=0.15\", 'ninja; sys_platform != \"win32\"']\n"
        "[project]\n"
        "name = \"x\"\n"
        "description = \"\"\"\n"
        "[tool.stepwatch]\n"
        "max_mb = 1\n"
        "\"\"\"\n"
        "authors = [{name = \"A [tool.stepwatch]\", email = 'a@b'},\n"
        "  {name = '#'}, ]\n"
        "dates = [1979-05-27 00:00:00, 1979-05-27]\n"
        "urls.\"a.b\" = 'x'\n"
        "[[tool.mypy.overrides]]\n"
        "module = [\n  \"a.*\", # [tool.stepwatch]\n  \"b\"\n]\n"
        "[tool.stepwatch-other]\n"
        "max_mb = 2\n"
        "[tool.\"step watch\"]\n"
        "max_mb = 3\n"
        "[ tool . 'stepwatch' ] # ours\n"
        "max_mb = 64\n"
        "policy = \"ring\"\n"
        "[tool.stepwatch.schedule]\n"
        "active = 3\n"
        "[tool.stepwatchful]\n"
        "max_mb = 5\n"
        "[tool.ruff.lint.per-file-ignores]\n"
        "\"tests/*\" = [\"D\"]\n";
    expect(sw__toml_read, "tool.stepwatch", text, true,
           "23 max_mb=64;24 policy=ring;26 schedule.active=3;");
    /* All other ways to write the same table. */
    static const char *const same[] = {
        "tool.stepwatch.max_mb = 1",
        "[tool]\nstepwatch.max_mb = 1",
        "[tool]\nstepwatch = {max_mb = 1}",
        "tool = {other = {x = 1}, stepwatch = {max_mb = 1}, z = [{stepwatch = 3}]}",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_true(read_text(sw__toml_read, "tool.stepwatch", same[i]));
        assert_string_equal(strchr(told, ' '), " max_mb=1;");
    }
    static const char *const none[] = {
        "",
        "[tool.ruff]\nx = 1",
        "stepwatch.max_mb = 1",
        "[[tool]]\nx = 1",
        "[tool]\nx={}",
        "max_mb = ",
        "[tool.ruff",
        "x = [[[",
        "[project]\nname = \"open\n",
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        /* What is wrong in other people's parts is their business. */
        expect(sw__toml_read, "tool.stepwatch", none[i], false, "");
    }
    expect(sw__toml_read, "tool.stepwatch", "[a]\nb = \"open\n[tool.stepwatch]\nx=1",
           true, "4 x=1;");
    expect(sw__toml_read, "tool.stepwatch", "[[tool.stepwatch]]\nmax_mb=1", true,
           "!1;2 max_mb=1;");
    expect(sw__toml_read, "tool.stepwatch", "tool.stepwatch = 3", false, "!1;");
}

static void yaml_values(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"profiling:\n  max_mb: 12\n", "2 max_mb=12;"},
        {"profiling:\n  max_mb: 12", "2 max_mb=12;"},
        {"\"profiling\" :\n    'max_mb': 12 # why\n    # more\n\n    out:   runs/#1 x  "
         "\r\n",
         "2 max_mb=12;5 out=runs/#1 x;"},
        {"profiling: {max_mb: 12, \"out\": \"a, b\", name: it's}",
         "1 max_mb=12;1 out=a, b;1 name=it's;"},
        {"profiling: {\n  max_mb: 12, # why\n  lines: [a:b, 'c:d'],\n}\nother: 1",
         "2 max_mb=12;3 lines[];3 lines+=a:b;3 lines+=c:d;"},
        {"profiling:\n  lines:\n    - a:b # one\n    - 'c:d'\n  out: x",
         "3 lines[];3 lines+=a:b;4 lines+=c:d;5 out=x;"},
        {"profiling:\n  lines:\n  - a:b\n  - c:d\n  out: x",
         "3 lines[];3 lines+=a:b;4 lines+=c:d;5 out=x;"},
        {"profiling:\n  lines: []\n", "2 lines[];"},
        {"profiling:\n  schedule:\n    wait: 1\n    active: 3\n  out: x",
         "3 schedule.wait=1;4 schedule.active=3;5 out=x;"},
        {"profiling:\n  schedule: {wait: 1}\n", "2 schedule.wait=1;"},
        {"profiling:\n  out: ~\n  name: null\n  policy:\n  max_mb: 3",
         "2 out~;3 name~;4 policy~;5 max_mb=3;"},
        {"profiling:\n  name: \"null \\\" \\\\ \\t#\"\n  out: 'it''s'",
         "2 name=null \" \\ \t#;3 out=it's;"},
        {"profiling: &ours # anchored\n  max_mb: 12\nother: *ours", "2 max_mb=12;"},
        {"profiling: &ours {max_mb: &n 12}", "!1;"},
        {"profiling:", ""},
        {"profiling: null\nx: 1", ""},
        {"profiling: {}", ""},
        {"profiling:\nother:\n  max_mb: 3", ""},
        {"%YAML 1.2\n---\nprofiling:\n  max_mb: 1\n---\nprofiling:\n  max_mb: 2\n",
         "4 max_mb=1;"},
        {"profiling:\n  max_mb: 1\n...\nprofiling:\n  max_mb: 2\n", "2 max_mb=1;"},
        {"profiling:\n  enabled: yes\n  progress: off\n  url: http://x/y:z\n",
         "2 enabled=yes;3 progress=off;4 url=http://x/y:z;"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect(sw__yaml_read, "profiling", table[i][0], true, table[i][1]);
    }
}

static void yaml_mistakes(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"profiling: 3", "!1;"},
        {"profiling: *other", "!1;"},
        {"profiling: !tag {max_mb: 1}", "!1;"},
        {"profiling:\n- max_mb\n", "!2;"},
        {"profiling:\n  - max_mb: 1\n  - x\n", "!2;!3;"},
        {"profiling:\n  name: |\n    max_mb: 3\n    text\n  out: x", "!2;5 out=x;"},
        {"profiling:\n  name: >-\n    text\n\n    more\n  out: x", "!2;6 out=x;"},
        {"profiling:\n  name: some\n    more: text\n  out: x", "2 name=some;!3;4 out=x;"},
        {"profiling:\n  name: a: b\n  out: x", "2 name=a;!2;3 out=x;"},
        {"profiling:\n  name: *n\n  <<: *base\n  out: x", "!2;!3;4 out=x;"},
        {"profiling:\n  name: !!str 3\n  out: x", "!2;3 out=x;"},
        {"profiling:\n  name: ${now:%Y}\n  out: x", "!2;3 out=x;"},
        {"profiling: {name: ${a.b}, out: x}", "!1;"},
        {"profiling:\n  name: \"over\n    lines\"\n  out: x", "!2;4 out=x;"},
        {"profiling:\n  name: 'a' b\n  out: x", "2 name=a;!2;3 out=x;"},
        {"profiling:\n  name: \"\\u0041\"\n  out: x", "!2;3 out=x;"},
        {"profiling:\n\tname: x\n  out: x", "!2;"},
        {"profiling:\n  out: x\n\tname: x\n  max_mb: 3\n", "2 out=x;!3;4 max_mb=3;"},
        {"profiling:\n  just text\n  out: x", "!2;3 out=x;"},
        {"profiling:\n  ? name\n  : x\n  out: x", "!2;!3;4 out=x;"},
        {"profiling:\n  lines:\n    - {a: 1}\n    - [b]\n    - c:d\n  out: x",
         "3 lines[];!3;!4;5 lines+=c:d;6 out=x;"},
        {"profiling: {max_mb: 1", "1 max_mb=1;!1;"},
        {"profiling: {lines: [a", "1 lines[];1 lines+=a;!1;"},
        {"profiling: {lines: [[a]]}", "1 lines[];!1;"},
        {"profiling: {max_mb: 1 2: 3}", "1 max_mb=1 2;!1;"},
        {"profiling: {max_mb: 1} x", "1 max_mb=1;!1;"},
        {"profiling: {max_mb}", "1 max_mb~;"},
        {"profiling:\n  name: @x\n  out: `y`\n", "!2;!3;"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect(sw__yaml_read, "profiling", table[i][0], true, table[i][1]);
    }
    static char deep[100000];
    snprintf(deep, sizeof deep, "profiling: {a: ");
    memset(deep + 15, '{', sizeof deep - 16);
    assert_true(read_text(sw__yaml_read, "profiling", deep));
    char *at = deep + snprintf(deep, sizeof deep, "profiling:\n");
    for (int i = 1; i < 40; i++) {
        at += sprintf(at, "%*sa:\n", i, "");
    }
    assert_true(read_text(sw__yaml_read, "profiling", deep));
    assert_non_null(strstr(mistakes, "too deeply"));
}

static void other_parts_of_a_yaml_file(void **state)
{
    (void)state;
    static const char text[] = "# @package _global_\n"
                               "defaults:\n"
                               "  - model: resnet\n"
                               "  - override hydra/launcher: joblib\n"
                               "  - _self_\n"
                               "base: &base\n"
                               "  profiling:\n"
                               "    max_mb: 1\n"
                               "text: |2-\n"
                               "    profiling:\n"
                               "      max_mb: 2\n"
                               "\n"
                               "    \"open\n"
                               "folded: >\n"
                               "  'open\n"
                               "quoted: \"over\n"
                               "profiling:\n"
                               "  max_mb: 3\n"
                               "\"\n"
                               "single: 'it''s\n"
                               "profiling: {max_mb: 4}'\n"
                               "flow: {a: [1, 'x]', \"}\"], b: it's, # ]}\n"
                               "profiling: {max_mb: 5},\n"
                               "}\n"
                               "list:\n"
                               "- profiling:\n"
                               "    max_mb: 6\n"
                               "- |\n"
                               "  \"open\n"
                               "- - 'x'\n"
                               "  - [a,\n"
                               "profiling]\n"
                               "? complex\n"
                               ": value\n"
                               "model: !!python/object:x.Y\n"
                               "  <<: *base\n"
                               "  don't: \"a\" \n"
                               "profiling2:\n"
                               "  max_mb: 7\n"
                               "profiling: # at last\n"
                               "  max_mb: 8\n"
                               "after: 'open";
    expect(sw__yaml_read, "profiling", text, true, "41 max_mb=8;");
    static const char *const none[] = {
        "",
        "\n",
        "x: 1",
        "- profiling:\n",
        "  profiling:\n    max_mb: 1\n",
        "profiling",
        "profilings: 1",
        "x: [profiling: 1]",
        "--- {profiling: 1}",
        "\"x\nprofiling: 1",
        "# profiling: 1",
        "profiling:x",
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        expect(sw__yaml_read, "profiling", none[i], false, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toml_values),      cmocka_unit_test(toml_mistakes),
        cmocka_unit_test(a_real_pyproject), cmocka_unit_test(yaml_values),
        cmocka_unit_test(yaml_mistakes),    cmocka_unit_test(other_parts_of_a_yaml_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
