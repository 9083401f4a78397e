/* Schedules: every form against a model that walks the steps one by one, and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/schedule.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random_below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

static sw_schedule parsed(const char *text)
{
    sw_schedule schedule;
    sw_error_info info = {0};
    if (sw_schedule_parse(&schedule, text, &info) != SW_OK) {
        fail_msg("\"%s\": %s", text, info.message);
    }
    return schedule;
}

/* The model: what a loop would do that counts as it goes. */
#define MODEL_STEPS 400
static void model(const sw_schedule *s, enum sw_action out[MODEL_STEPS])
{
    uint64_t in_cycle = 0;
    uint64_t cycles = 0;
    uint64_t since = 0;
    for (uint64_t step = 0; step < MODEL_STEPS; step++) {
        out[step] = SW_ACTION_NONE;
        if (step < s->skip_first) {
            continue;
        }
        uint64_t length = s->wait + s->warmup + s->active;
        switch (s->form) {
        case SW_SCHEDULE_CYCLE:
            if (s->repeat == 0 || cycles < s->repeat) {
                if (in_cycle >= s->wait && in_cycle < s->wait + s->warmup) {
                    out[step] = SW_ACTION_WARMUP;
                } else if (in_cycle >= s->wait && in_cycle < length) {
                    out[step] =
                        in_cycle + 1 == length ? SW_ACTION_SAVE : SW_ACTION_RECORD;
                }
            }
            in_cycle++;
            if (in_cycle >= length && in_cycle >= s->every) {
                in_cycle = 0;
                cycles++;
            }
            break;
        case SW_SCHEDULE_EVERY:
            out[step] = since == 0 ? SW_ACTION_SAVE : SW_ACTION_NONE;
            since = since + 1 == s->every ? 0 : since + 1;
            break;
        case SW_SCHEDULE_STEPS:
            for (uint32_t i = 0; i < s->step_count; i++) {
                if (s->steps[i] + s->skip_first == step) {
                    out[step] = SW_ACTION_SAVE;
                }
            }
            break;
        default:
            out[step] = SW_ACTION_RECORD;
            break;
        }
    }
}

static sw_schedule random_schedule(void)
{
    sw_schedule s = {.form = (uint32_t)random_below(4)};
    s.skip_first = random_below(3) ? 0 : random_below(50);
    if (s.form == SW_SCHEDULE_CYCLE) {
        s.wait = random_below(6);
        s.warmup = random_below(4);
        s.active = 1 + random_below(6);
        s.repeat = (uint32_t)random_below(5);
        s.every = random_below(3) ? random_below(60) : 0;
    } else if (s.form == SW_SCHEDULE_EVERY) {
        s.every = 1 + random_below(30);
    } else if (s.form == SW_SCHEDULE_STEPS) {
        s.step_count = 1 + (uint32_t)random_below(SW_SCHEDULE_STEPS_MAX);
        for (uint32_t i = 0; i < s.step_count; i++) {
            s.steps[i] = random_below(500);
        }
    }
    return s;
}

static void random_schedules_do_as_the_model(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        sw_schedule s = random_schedule();
        enum sw_action expected[MODEL_STEPS];
        model(&s, expected);
        assert_int_equal(sw_schedule_check(&s, NULL, NULL), SW_OK);
        char text[8192];
        assert_true(sw_schedule_format(&s, text, sizeof text) < sizeof text);
        sw_schedule again = parsed(text);
        assert_memory_equal(&again, &s, sizeof s);
        for (uint64_t step = 0; step < MODEL_STEPS; step++) {
            if (sw_schedule_action(&s, step) != expected[step]) {
                fail_msg("%s: step %llu is %d, not %d", text, (unsigned long long)step,
                         sw_schedule_action(&s, step), expected[step]);
            }
        }
    }
}

/* What is recorded, as "2 3 4! 52 …": an exclamation mark where a cycle ends. */
static const char *recorded(const sw_schedule *s, uint64_t steps)
{
    static char text[1024];
    size_t length = 0;
    text[0] = '\0';
    for (uint64_t step = 0; step < steps && length < sizeof text - 32; step++) {
        enum sw_action action = sw_schedule_action(s, step);
        if (action >= SW_ACTION_RECORD) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%llu%s",
                                       length ? " " : "", (unsigned long long)step,
                                       action == SW_ACTION_SAVE ? "!" : "");
        }
    }
    return text;
}

static void usual_schedules_record_what_they_say(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"wait=1,warmup=1,active=3,every=50,repeat=2", "2 3 4! 52 53 54!"},
        {"repeat=3,active=5,every=25,wait=1,warmup=1",
         "2 3 4 5 6! 27 28 29 30 31! 52 53 54 55 56!"},
        {"active=5,every=25,repeat=3", "0 1 2 3 4! 25 26 27 28 29! 50 51 52 53 54!"},
        {"active=1,every=60", "0! 60! 120!"},
        {"active=2,wait=50", "50 51! 102 103!"},
        {"active=3,wait=2,every=2,repeat=2", "2 3 4! 7 8 9!"},
        {"active=2,repeat=1,skip_first=10", "10 11!"},
        {"every=50", "0! 50! 100!"},
        {"every=50,skip_first=20", "20! 70! 120!"},
        {"steps=1,10,50,100", "1! 10! 50! 100!"},
        {"steps=100,1,10,1", "1! 10! 100!"},
        {"steps=1,2,skip_first=10", "11! 12!"},
        {"always,skip_first=148", "148 149"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        sw_schedule s = parsed(table[i][0]);
        assert_string_equal(recorded(&s, 150), table[i][1]);
        assert_int_equal(sw_schedule_check(&s, NULL, NULL), SW_OK);
        assert_string_equal(recorded(&s, 150), table[i][1]);
    }
    sw_schedule s = parsed("wait=1,warmup=1,active=3,every=50,repeat=2");
    static const enum sw_action first[] = {
        SW_ACTION_NONE,   SW_ACTION_WARMUP, SW_ACTION_RECORD,
        SW_ACTION_RECORD, SW_ACTION_SAVE,   SW_ACTION_NONE,
    };
    for (uint64_t step = 0; step < 6; step++) {
        assert_int_equal(sw_schedule_action(&s, step), first[step]);
        assert_int_equal(sw_schedule_action(&s, step + 50), first[step]);
        assert_int_equal(sw_schedule_action(&s, step + 100), SW_ACTION_NONE);
    }
}

static void always_is_all_zero_and_null(void **state)
{
    (void)state;
    const sw_schedule zero = {0};
    sw_schedule always = parsed(" always ");
    assert_memory_equal(&zero, &always, sizeof zero);
    assert_int_equal(sw_schedule_action(NULL, 0), SW_ACTION_RECORD);
    assert_int_equal(sw_schedule_action(&zero, UINT64_MAX), SW_ACTION_RECORD);
    char text[16];
    assert_int_equal(sw_schedule_format(NULL, text, sizeof text), 6);
    assert_string_equal(text, "always");
}

static void huge_numbers_do_not_overflow(void **state)
{
    (void)state;
    const uint64_t most = UINT64_MAX;
    sw_schedule s = parsed("wait=18446744073709551000,active=3,skip_first=600");
    assert_int_equal(sw_schedule_action(&s, most), SW_ACTION_NONE);
    s = parsed("wait=18446744073709551000,active=3,skip_first=612");
    assert_int_equal(sw_schedule_action(&s, most - 3), SW_ACTION_RECORD);
    assert_int_equal(sw_schedule_action(&s, most - 1), SW_ACTION_SAVE);
    s = parsed("active=1,every=18446744073709551615");
    assert_int_equal(sw_schedule_action(&s, 0), SW_ACTION_SAVE);
    assert_int_equal(sw_schedule_action(&s, most - 1), SW_ACTION_NONE);
    assert_int_equal(sw_schedule_action(&s, most), SW_ACTION_SAVE);
    s = parsed("active=1,repeat=4294967295");
    assert_int_equal(sw_schedule_action(&s, 4294967294u), SW_ACTION_SAVE);
    assert_int_equal(sw_schedule_action(&s, 4294967295u), SW_ACTION_NONE);
    s = parsed("steps=18446744073709551615");
    assert_int_equal(sw_schedule_action(&s, most), SW_ACTION_SAVE);
    s = parsed("every=18446744073709551615,skip_first=18446744073709551615");
    assert_int_equal(sw_schedule_action(&s, most), SW_ACTION_SAVE);

    /* Values that no parser made are answered too, with no division by zero. */
    sw_schedule wild = {.form = SW_SCHEDULE_CYCLE};
    assert_int_equal(sw_schedule_action(&wild, 5), SW_ACTION_NONE);
    wild.wait = wild.warmup = wild.active = most;
    assert_int_equal(sw_schedule_action(&wild, most), SW_ACTION_NONE);
    assert_int_equal(sw_schedule_check(&wild, NULL, NULL), SW_EINVAL);
    wild = (sw_schedule){.form = SW_SCHEDULE_EVERY};
    assert_int_equal(sw_schedule_action(&wild, 0), SW_ACTION_NONE);
    wild = (sw_schedule){.form = SW_SCHEDULE_STEPS, .step_count = UINT32_MAX};
    assert_int_equal(sw_schedule_action(&wild, 7), SW_ACTION_NONE);
    wild = (sw_schedule){.form = 77};
    assert_int_equal(sw_schedule_action(&wild, 7), SW_ACTION_RECORD);
}

static void check_adjusts_and_says_so(void **state)
{
    (void)state;
    const char *warning = "left over";
    sw_schedule s = parsed("wait=1,warmup=1,active=3,every=4");
    assert_int_equal(s.every, 4);
    assert_int_equal(sw_schedule_check(&s, &warning, NULL), SW_OK);
    assert_non_null(strstr(warning, "longer than its period"));
    assert_int_equal(s.every, 5);
    assert_int_equal(sw_schedule_check(&s, &warning, NULL), SW_OK);
    assert_null(warning);

    s = parsed("active=3");
    assert_int_equal(sw_schedule_check(&s, &warning, NULL), SW_OK);
    assert_null(warning);
    assert_int_equal(s.every, 0);

    s = (sw_schedule){.form = SW_SCHEDULE_STEPS, .step_count = 3, .steps = {9, 2, 9}};
    s.active = 5; /* not of this form: cleared */
    assert_int_equal(sw_schedule_check(&s, &warning, NULL), SW_OK);
    assert_non_null(warning);
    sw_schedule clean = {.form = SW_SCHEDULE_STEPS, .step_count = 2, .steps = {2, 9}};
    assert_memory_equal(&s, &clean, sizeof s);

    sw_schedule bad[] = {
        {.form = 9},
        {.form = SW_SCHEDULE_CYCLE, .wait = 1},
        {.form = SW_SCHEDULE_EVERY},
        {.form = SW_SCHEDULE_STEPS},
        {.form = SW_SCHEDULE_STEPS, .step_count = SW_SCHEDULE_STEPS_MAX + 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sw_error_info info = {0};
        sw_schedule before = bad[i];
        assert_int_equal(sw_schedule_check(&bad[i], &warning, &info), SW_EINVAL);
        assert_true(info.message[0] != '\0');
        assert_memory_equal(&before, &bad[i], sizeof before);
    }
    assert_int_equal(sw_schedule_check(NULL, NULL, NULL), SW_EINVAL);
}

static void wrong_text_is_refused_with_the_word(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"", "empty"},
        {"  \t", "empty"},
        {"sometimes", "\"sometimes\" (character 1"},
        {"wait=1,aktiv=3", "\"aktiv\" (character 8 of the schedule) is not a word"},
        {"active", "\"active\" (character 1 of the schedule) should be followed by ="},
        {"active=", "should be a number"},
        {"active=x", "\"x\" (character 8 of the schedule) is not a whole number"},
        {"active=-1", "\"-1\""},
        {"active=1.5", "\"1.5\""},
        {"active=0x10", "\"0x10\""},
        {"active=3=4", "\"3=4\""},
        {"active=3,active=3", "\"active\" (character 10 of the schedule) is given twice"},
        {"steps=1,2,steps=3", "\"steps\" (character 11 of the schedule) is given twice"},
        {"active=18446744073709551616", "too large"},
        {"active=99999999999999999999999", "too large"},
        {"active=1,repeat=4294967296", "\"4294967296\""},
        {"wait=18446744073709551615,active=1", "too large"},
        {"active=1,,wait=2", "(character 10"},
        {"active=1,", "(character 10"},
        {",active=1", "(character 1 "},
        {"=5", "\"=5\""},
        {"active=1,7", "\"7\""},
        {"7", "\"7\""},
        {"active=0", "active=N"},
        {"wait=1,every=50", "active=N"},
        {"every=5,repeat=2", "active=N"},
        {"every=0", "every=0"},
        {"steps=", "should be a number"},
        {"steps=1,every=5", "\"steps\" goes with skip_first"},
        {"steps=1,active=5", "\"steps\" goes with skip_first"},
        {"steps=1,skip_first=2,3", "\"3\""},
        {"always,every=5", "\"always\" goes with skip_first"},
        {"always=1", "takes no number"},
        {"Active=3", "\"Active\""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        sw_error_info info = {0};
        sw_schedule s;
        const sw_schedule zero = {0};
        memset(&s, 0xAA, sizeof s);
        assert_int_equal(sw_schedule_parse(&s, table[i][0], &info), SW_EINVAL);
        if (!strstr(info.message, table[i][1])) {
            fail_msg("\"%s\" says: %s", table[i][0], info.message);
        }
        assert_memory_equal(&s, &zero, sizeof s);
        assert_int_equal(sw_schedule_parse(&s, table[i][0], NULL), SW_EINVAL);
    }
    sw_schedule s;
    assert_int_equal(sw_schedule_parse(&s, NULL, NULL), SW_EINVAL);
    assert_int_equal(sw_schedule_parse(NULL, "always", NULL), SW_EINVAL);
}

static void as_many_steps_as_fit(void **state)
{
    (void)state;
    char text[8192] = "steps=0";
    for (int i = 1; i < SW_SCHEDULE_STEPS_MAX; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i * 3);
    }
    sw_schedule s = parsed(text);
    assert_int_equal(s.step_count, SW_SCHEDULE_STEPS_MAX);
    assert_int_equal(sw_schedule_action(&s, UINT64_C(255) * 3), SW_ACTION_SAVE);
    snprintf(text + strlen(text), sizeof text - strlen(text), ",9999");
    sw_error_info info;
    assert_int_equal(sw_schedule_parse(&s, text, &info), SW_EINVAL);
    assert_non_null(strstr(info.message, "\"9999\""));
}

static void blanks_do_not_matter(void **state)
{
    (void)state;
    sw_schedule plain = parsed("wait=1,warmup=2,active=3,repeat=4,every=50,skip_first=6");
    sw_schedule airy =
        parsed("\n wait = 1 ,\twarmup= 2, active =3,repeat=4 , every=50,skip_first=6 ");
    assert_memory_equal(&plain, &airy, sizeof plain);
    char text[128];
    assert_int_equal(sw_schedule_format(&plain, text, sizeof text), 55);
    assert_string_equal(text, "wait=1,warmup=2,active=3,repeat=4,every=50,skip_first=6");
}

static void format_behaves_as_snprintf(void **state)
{
    (void)state;
    sw_schedule s = parsed("steps=1,10,50,100,skip_first=3");
    char whole[64];
    size_t length = sw_schedule_format(&s, whole, sizeof whole);
    assert_string_equal(whole, "steps=1,10,50,100,skip_first=3");
    assert_int_equal(length, strlen(whole));
    assert_int_equal(sw_schedule_format(&s, NULL, 0), length);
    for (size_t size = 1; size <= length; size++) {
        char part[64];
        memset(part, 'x', sizeof part);
        assert_int_equal(sw_schedule_format(&s, part, size), length);
        assert_int_equal(strlen(part), size - 1);
        assert_memory_equal(part, whole, size - 1);
        assert_int_equal(part[size], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_do_as_the_model),
        cmocka_unit_test(usual_schedules_record_what_they_say),
        cmocka_unit_test(always_is_all_zero_and_null),
        cmocka_unit_test(huge_numbers_do_not_overflow),
        cmocka_unit_test(check_adjusts_and_says_so),
        cmocka_unit_test(wrong_text_is_refused_with_the_word),
        cmocka_unit_test(as_many_steps_as_fit),
        cmocka_unit_test(blanks_do_not_matter),
        cmocka_unit_test(format_behaves_as_snprintf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
