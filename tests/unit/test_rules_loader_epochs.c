/* Findings about loaders, on runs composed by hand: what epochs begin with, lists that are searched, batches that come in bursts, and what is not
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_plan.h"

/* --- epochs --- */

static const struct plan again = {.steps = 10,
                                  .epochs = 6,
                                  .compute = 20,
                                  .wait = 0.2,
                                  .first = 100,
                                  .cores = "4.00",
                                  .workers = 2,
                                  .getitem = 8,
                                  .getitem_cpu = 8,
                                  .collate = 0.5,
                                  .start = 60,
                                  .shutdown = 20};

static void workers_are_started_again(void **state)
{
    (void)state;
    struct result result = find(&again);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(has_rule(it, "RULE-08"));
    assert_true(advises(it, "train.py:41: DataLoader(num_workers=2) \xE2\x86\x92 "
                            "persistent_workers=True"));
    assert_true(fabs(number(it, "restart_ms") - (60 + 20 + 100 - 8.5)) < 0.1);
    assert_true(number(it, "restarts") == 5);
    assert_true(it->speedup > 1.3 && it->speedup < 2.5);
    done(&result);
}

/* What the step after a start computes longer goes with the start. With workers that stay it is something else. */
static void steps_after_a_start_are_slow(void **state)
{
    (void)state;
    struct result result = find(&again);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(number(it, "first_step_ms") == 0);
    const double before = it->speedup;
    done(&result);
    struct plan plan = again;
    plan.cold = 15;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(fabs(number(it, "first_step_ms") - 15) < 0.2);
    assert_true(fabs(number(it, "restart_ms") - (60 + 20 + 100 - 8.5 + 15)) < 0.3);
    assert_true(it->speedup > before + 0.03);
    done(&result);
    plan.bits = SW_LOADER_PERSISTENT;
    plan.first = 9;
    plan.start = 1;
    plan.shutdown = 0;
    assert_none(&plan);
}

/* Where the framework does other things between starting workers and asking them, the first batch is there in time: what is left
 * are the start and the end. Where batches are waited for as long in any step, a start adds little. */
static void starts_that_no_batch_waits_for(void **state)
{
    (void)state;
    struct plan plan = again;
    plan.wait = 1.2;
    plan.first = 2.7;
    plan.getitem = plan.getitem_cpu = 3;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(fabs(number(it, "restart_ms") - (60 + 20 + 2.7 - 3.5)) < 0.1);
    assert_true(it->speedup > 1.15 && it->speedup < 1.6);
    done(&result);
    plan.wait = plan.first = 50;
    plan.getitem = plan.getitem_cpu = 100;
    result = find(&plan);
    for (size_t i = 0; i < result.count; i++) {
        assert_int_not_equal(result.list[i].kind, SW_FINDING_LOADER_RESTART);
    }
    done(&result);
}

static void workers_that_stay_are_fine(void **state)
{
    (void)state;
    struct plan plan = again;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.first = 9;
    plan.start = 1;
    plan.shutdown = 0;
    assert_none(&plan);
    plan = again; /* on a busy machine it may take long to tell them */
    plan.bits = SW_LOADER_PERSISTENT;
    plan.shutdown = 0;
    assert_none(&plan);
    plan = again; /* one epoch has no second start */
    plan.steps = 60;
    plan.epochs = 1;
    assert_none(&plan);
}

static void a_loader_built_in_every_epoch(void **state)
{
    (void)state;
    struct plan plan = again;
    plan.bits = SW_LOADER_PERSISTENT; /* and yet they start */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(advises(it, "build it once"));
    assert_false(advises(it, "persistent_workers"));
    done(&result);
}

/* --- searches --- */

#define LOOKUP "def parse(w):\n    y = 1\n    return words.index(w)"
#define EACH "def getitem(self, i):\n    return [parse(w) for w in self.rows[i]]\n"
/* A function that searches a list is called for one word after the other. Where it asks first whether the word is there, the
 * interpreter searches, too; that of another list says nothing. */
static void a_list_is_searched_by_a_function(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        unsigned in_call; /* of 490 samples */
        bool searched;
    } cases[] = {{LOOKUP " if w in words else 0\n" EACH, 350, true},
                 {LOOKUP " if w in words else 0\n" EACH, 200, false},
                 {LOOKUP " if w in wordy else 0\n" EACH, 350, false},
                 {LOOKUP "\n" EACH, 480, true},
                 {LOOKUP "\n" EACH, 350, false},
                 {LOOKUP " if w in words else 0\n"
                         "def getitem(self, i):\n    return parse(self.rows[i])\n",
                  350, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan = slow_samples;
        plan.cores = "2.00";
        plan.threads = 1;
        plan.line = 490;
        plan.others = 20;
        plan.in_call = cases[i].in_call;
        plan.caller = 4;
        plan.source = cases[i].source;
        struct result result = find(&plan);
        const sw_finding *it = NULL;
        assert_true(about_loaders(&result, &it));
        assert_int_equal(advises(it, "make a dict"), cases[i].searched);
        assert_true(!cases[i].searched || it->kind == SW_FINDING_LOADER_TRANSFORM);
        done(&result);
    }
}

/* --- bursts --- */

/* Every 20 batches four come that take long: two workers with two batches each in stock cannot bridge that. */
static double burst_made(unsigned i)
{
    return i % 20 < 4 ? 80 : 5;
}

static double burst_wait(unsigned i)
{
    return i >= 20 && i % 20 == 0 ? 60 : i >= 20 && i % 20 == 2 ? 60 : 0.2;
}

static const struct plan bursts = {.steps = 200,
                                   .epochs = 1,
                                   .compute = 20,
                                   .wait_of = burst_wait,
                                   .wait = 6,
                                   .cores = "4.00",
                                   .workers = 2,
                                   .getitem = 20,
                                   .getitem_cpu = 20,
                                   .made_of = burst_made};

static void batches_come_in_bursts(void **state)
{
    (void)state;
    struct result result = find(&bursts);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(has_rule(it, "RULE-10"));
    assert_true(
        advises(it, "DataLoader(prefetch_factor=2) \xE2\x86\x92 prefetch_factor="));
    assert_true(number(it, "wait_p95_ms") > 3 * number(it, "wait_p50_ms"));
    assert_true(it->speedup > 1.05 && it->speedup < 1.5);
    done(&result);
}

/* The same from files: workers are enough on average, so it is the bursts that are told. */
static void bursts_of_waiting(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.getitem_cpu = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(number(it, "blocked_share") > 0.5);
    done(&result);
}

/* One long batch in fifty: no quantile shows it, and it is nearly all of the waiting. */
static double seldom_made(unsigned i)
{
    return i % 50 < 2 ? 400 : 1;
}

static double seldom_wait(unsigned i)
{
    return i >= 50 && i % 50 == 0 ? 330 : 0.2;
}

static void bursts_that_are_few(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.steps = 400;
    plan.made_of = seldom_made;
    plan.wait_of = seldom_wait;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(number(it, "bursts_share") > 0.9);
    assert_true(number(it, "prefetch_proposed") >= 8);
    done(&result);
}

/* A shard is read and unpacked at once, then its batches are there: nearly as much work as training, all of it at one place. */
static double shard_made(unsigned i)
{
    return i % 16 == 0 ? 270 : 1;
}

static double shard_wait(unsigned i)
{
    return i >= 16 && i % 16 == 0 ? 225 : 0.2;
}

static void bursts_with_little_to_spare(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.compute = 18;
    plan.workers = 1;
    plan.getitem = plan.getitem_cpu = 17.8;
    plan.bits = SW_LOADER_ITERABLE;
    plan.made_of = shard_made;
    plan.wait_of = shard_wait;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(number(it, "prefetch_proposed") >= 16);
    assert_true(it->speedup > 1.3 && it->speedup < 2);
    /* The core that slept between shards gets faster, too: recorded programs of this kind gained 1.9 times. */
    assert_true(it->high > 1.95 && it->high < 2.5);
    done(&result);
}

/* Far more work than training: a longer queue runs empty all the same. */
static double too_much_made(unsigned i)
{
    return i % 16 == 0 ? 800 : 1;
}

static double too_much_wait(unsigned i)
{
    return i >= 16 && i % 16 == 0 ? 760 : 0.2;
}

static void bursts_that_no_queue_bridges(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.compute = 18;
    plan.workers = 1;
    plan.getitem = plan.getitem_cpu = 51;
    plan.made_of = too_much_made;
    plan.wait_of = too_much_wait;
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

static void bursts_that_the_queue_bridges(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.prefetch = 16;
    plan.wait_of = NULL;
    plan.wait = 0.2;
    assert_none(&plan);
}

/* Batches wait in workers that are too busy to hand them over; the queue is long enough. */
static double asked_wait(unsigned i)
{
    return i % 10 == 5 ? 80 : 0.3;
}

static void batches_that_wait_in_workers(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.prefetch = 16;
    plan.made_of = NULL;
    plan.wait_of = asked_wait;
    plan.asked = 8;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(advises(it, "set_sharing_strategy"));
    assert_true(fabs(number(it, "take_waits_ms") - 7.9) < 0.2);
    assert_true(it->speedup > 1.15 && it->speedup < 1.5);
    done(&result);
    struct plan asleep =
        plan; /* a worker that waits for files has the interpreter to spare */
    asleep.function = 20;
    asleep.asleep = 930;
    asleep.getitem_cpu = asleep.getitem / 10;
    result = find(&asleep);
    for (size_t i = 0; i < result.count; i++) {
        assert_false(advises(&result.list[i], "set_sharing_strategy"));
    }
    done(&result);
    plan.wait_of = NULL; /* they are fetched while nobody waits for them */
    plan.wait = 0.2;
    assert_none(&plan);
}

/* --- what is not known --- */

static void a_loader_of_someone_else(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_loader = true; /* a loop that says what is waiting, no more */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "DataLoader") || advises(it, "num_workers"));
    assert_null(it->file);
    assert_int_equal(it->severity, SW_SEVERITY_HIGH);
    done(&result);
    plan = slow_samples;
    plan.bits = SW_LOADER_FOREIGN;
    plan.workers = 0;
    result = find(&plan);
    const sw_finding *first = NULL;
    if (about_loaders(&result, &first)) {
        assert_false(advises(first, "DataLoader") || advises(first, "num_workers"));
    }
    done(&result);
}

/* Handing a batch over costs as much as making it. */
static void a_short_wait_for_someone_elses_loader(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_loader = true;
    plan.compute = 2;
    plan.wait = 0.25;
    plan.cpu = 2.25;
    assert_none(&plan);
    plan.compute = 20;
    plan.wait = 5;
    plan.cpu = 25;
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

static void pages_are_pinned_for_a_gpu_only(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.h2d = 5;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(advises(it, "pin_memory=True"));
    assert_true(has_rule(it, "RULE-07") && has_rule(it, "RULE-37"));
    done(&result);
    plan.bits = SW_LOADER_PIN;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "pin_memory") || has_rule(it, "RULE-07"));
    done(&result);
}

static void missing_places_and_sizes(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_site = true;
    plan.cores = NULL; /* as one */
    plan.bits = SW_LOADER_ITERABLE;
    struct result result = find(&plan);
    const sw_finding *first = NULL;
    about_loaders(&result, &first);
    done(&result);
    plan.cores = "8.00";
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_null(it->file);
    assert_true(advises(it, "get_worker_info"));
    assert_true(strncmp(it->advice[0], "DataLoader(", 11) == 0);
    done(&result);
}

static void too_few_steps_say_nothing(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.steps = 4;
    struct result result = find(&plan);
    const char *why;
    assert_int_equal(result.count, 0);
    assert_false(sw_findings_checked(result.findings, SW_FINDING_LOADER_WORKERS, &why));
    assert_non_null(why);
    done(&result);
}

/* Workers whose files are gone, batches that were never made, numbers that no recorder writes. */
static void nonsense_does_no_harm(void **state)
{
    (void)state;
    const uint64_t huge[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 53};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        for (unsigned workers = 0; workers < 3; workers++) {
            struct plan plan = slow_samples;
            plan.workers = workers;
            plan.bits = UINT16_MAX & ~(unsigned)SW_LOADER_FOREIGN;
            rows_made = 0;
            struct tb *tb = training_trace(&plan);
            for (unsigned kind = 0; kind < SW_STAGE_KINDS + 1; kind++) {
                const sw_row row = {SW_TABLE_STAGE,
                                    0,
                                    rows_made++,
                                    {T_LOADER, workers ? 0 : NONE, kind, T_DECODE},
                                    {huge[i], huge[i], huge[i], huge[i], huge[i]}};
                tb_row(tb, &row);
            }
            sw_record_batch record = {.head = {.kind = SW_RECORD_BATCH,
                                               .units = sizeof record / SW_RECORD_UNIT,
                                               .flags = SW_RECORD_INTERVAL,
                                               .id = T_LOADER,
                                               .ticks = START},
                                      .end = START + 5,
                                      .fetch_begin = huge[i],
                                      .fetch_end = huge[4 - i],
                                      .receive = huge[i],
                                      .cpu_ns = huge[i],
                                      .bytes = huge[i],
                                      .step = huge[i],
                                      .worker = (uint32_t)huge[i]};
            tb_record(tb, 0, &record);
            struct fixture *fixture = fixture_new();
            write_trace(fixture, tb);
            struct result result = look_at(fixture);
            done(&result);
        }
    }
}

/* --- what the rest of a step gains --- */

/* A thread that slept for its batches, with an allocator that keeps what the steps need: the rest gets less faster by the change than
 * with one that takes its memory again in each of them. */
static void memory_that_is_kept(void **state)
{
    (void)state;
    double speedup[2];
    for (unsigned taken = 0; taken < 2; taken++) {
        struct plan plan = {.steps = 50,
                            .epochs = 2,
                            .compute = 20,
                            .wait = 26,
                            .cores = "2.00",
                            .getitem = 25.5,
                            .getitem_cpu = 1,
                            .collate = 0.5,
                            .cpu = 21.5,
                            .faults = taken ? 3000 : 10,
                            .threads = 1};
        struct result result = find(&plan);
        const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_IO);
        speedup[taken] = it->speedup;
        done(&result);
    }
    /* By 46 / 20 if what is computed stays as it is. */
    assert_true(speedup[0] > 1.9 && speedup[0] < 2.6);
    assert_true(speedup[1] > speedup[0] + 0.15);
}

/* Two cores that both compute are slower for as long as both do: a worker that needs a quarter of a step for its batch takes less
 * from the training than one that needs all of it. */
static void a_worker_that_computes_for_a_while(void **state)
{
    (void)state;
    for (unsigned throughout = 0; throughout < 2; throughout++) {
        struct plan plan = slow_samples;
        plan.cores = "2.00";
        plan.threads = 1;
        plan.compute = 100;
        plan.wait = throughout ? 90 : 25;
        plan.getitem = plan.getitem_cpu = plan.wait - 0.5;
        struct result result = find(&plan);
        const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
        const double step = (100 + plan.wait) / it->speedup;
        assert_true(throughout ? step > 101.5 : step > 97 && step < 101.5);
        done(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_started_again),
        cmocka_unit_test(steps_after_a_start_are_slow),
        cmocka_unit_test(starts_that_no_batch_waits_for),
        cmocka_unit_test(memory_that_is_kept),
        cmocka_unit_test(a_worker_that_computes_for_a_while),
        cmocka_unit_test(a_list_is_searched_by_a_function),
        cmocka_unit_test(workers_that_stay_are_fine),
        cmocka_unit_test(a_loader_built_in_every_epoch),
        cmocka_unit_test(batches_come_in_bursts),
        cmocka_unit_test(bursts_of_waiting),
        cmocka_unit_test(bursts_that_are_few),
        cmocka_unit_test(bursts_with_little_to_spare),
        cmocka_unit_test(bursts_that_no_queue_bridges),
        cmocka_unit_test(bursts_that_the_queue_bridges),
        cmocka_unit_test(batches_that_wait_in_workers),
        cmocka_unit_test(a_loader_of_someone_else),
        cmocka_unit_test(a_short_wait_for_someone_elses_loader),
        cmocka_unit_test(pages_are_pinned_for_a_gpu_only),
        cmocka_unit_test(missing_places_and_sizes),
        cmocka_unit_test(too_few_steps_say_nothing),
        cmocka_unit_test(nonsense_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
