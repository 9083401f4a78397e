/* Findings about loaders, on runs composed by hand: each cause planted once, and the same run without it. Here: workers and what
 * they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_plan.h"

/* --- too few workers --- */

static void workers_make_batches_ahead(void **state)
{
    (void)state;
    struct result result = find(&slow_samples);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->predicted);
    assert_true(it->speedup > 1.8 && it->speedup < 2.17);
    assert_true(it->low > 1.15);
    assert_int_equal(it->severity, SW_SEVERITY_HIGH);
    assert_string_equal(it->file, "/src/train.py");
    assert_int_equal(it->line, 41);
    assert_string_equal(it->name, "train_loader");
    assert_true(
        advises(it, "train.py:41: DataLoader(num_workers=0) \xE2\x86\x92 num_workers="));
    assert_true(advises(it, "persistent_workers=True"));
    assert_true(advises(it, "benchmark_dataloader(train_loader)"));
    assert_true(advises(it, "made again in each of"));
    assert_false(advises(it, "pin_memory"));
    assert_true(has_rule(it, "RULE-02") && has_rule(it, "RULE-06") &&
                has_rule(it, "RULE-13") && has_rule(it, "RULE-36") &&
                has_rule(it, "RULE-49"));
    assert_false(has_rule(it, "RULE-07"));
    assert_true(fabs(number(it, "wait_share") - 0.5) < 0.01);
    assert_true(fabs(number(it, "compute_ms") - 30.1) < 0.2);
    assert_true(number(it, "workers") == 0);
    assert_true(number(it, "workers_proposed") <= 4);
    assert_true(it->confidence > 0.9);
    done(&result);
}

/* Nothing was made twice: there is nothing to keep. */
static void one_epoch_makes_nothing_again(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.passes = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "made again in each of"));
    assert_false(has_rule(it, "RULE-13"));
    done(&result);
}

static void more_workers_than_before(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.workers = 1;
    plan.getitem = plan.getitem_cpu = 59.5; /* twice what training takes */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 1.6 && it->speedup < 2.05);
    assert_true(advises(it, "DataLoader(num_workers=1) \xE2\x86\x92 num_workers="));
    done(&result);
}

static void a_loader_that_keeps_up_is_fine(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 1;
    plan.getitem = plan.getitem_cpu = 0.5;
    assert_none(&plan);
    plan.workers = 2;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.getitem = plan.getitem_cpu = 40; /* hidden behind training */
    plan.wait = 0.2;
    assert_none(&plan);
}

static double now_and_then(unsigned i)
{
    return i == 31 || i == 47 ? 60 : 0.5;
}

static double at_first(unsigned i)
{
    return i < 4 ? 300 : 0.2;
}

static void chance_and_warm_up_are_no_evidence(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait_of = now_and_then; /* 7 % on average, from two steps */
    assert_none(&plan);
    plan.wait_of = at_first;
    assert_none(&plan);
}

/* Making a batch takes 1 ms of a core and waits 9 ms for one; the rest of the step sleeps. */
static void a_busy_machine_is_no_fault_of_the_loader(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 10;
    plan.getitem = 10;
    plan.getitem_cpu = 0.9;
    plan.collate = 0.1;
    plan.cpu = 1;
    plan.delay = 9.2;
    assert_none(&plan);
    plan.cpu = 30; /* a core of its own: the samples wait for something else */
    plan.delay = 0;
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_IO);
    done(&result);
}

/* What workers may gain or not is worth a word on a quiet machine, and little where others have the cores. */
static void a_busy_machine_makes_gains_doubtful(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 14;
    plan.getitem = plan.getitem_cpu = 10.5;
    plan.collate = 3.5;
    plan.cores = "2.00";
    plan.cpu = 44;
    plan.threads = 1;
    struct result result = find(&plan);
    assert_true(assert_one(&result, SW_FINDING_LOADER_WORKERS)->severity >
                SW_SEVERITY_LOW);
    done(&result);
    plan.cpu = 25;
    plan.delay = 19;
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_int_equal(it->severity, SW_SEVERITY_LOW);
    done(&result);
}

/* Training that waits for its device leaves its core to the worker: two cores are enough for all of the gain. */
static void steps_that_sleep_need_no_core(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.cpu = 60; /* computes all the time */
    struct result result = find(&plan);
    const double busy = assert_one(&result, SW_FINDING_LOADER_WORKERS)->speedup;
    done(&result);
    plan.cpu = 31; /* 30 of them to make the batch */
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > busy + 0.1);
    assert_true(it->speedup > 1.8);
    done(&result);
}

static void one_core_has_no_room_for_workers(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "1.00";
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "Images.__getitem__");
    assert_false(advises(it, "num_workers"));
    done(&result);
}

/* As many workers as cores, and they compute: nothing to gain from more. */
static void cores_that_are_used_up(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 2;
    plan.getitem = plan.getitem_cpu = 100;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_false(advises(it, "num_workers"));
    assert_true(it->severity > SW_SEVERITY_LOW);
    done(&result);
    plan.function = 490; /* one function has most of it */
    plan.in_call = 485;
    result = find(&plan);
    assert_true(assert_one(&result, SW_FINDING_LOADER_TRANSFORM)->severity >
                SW_SEVERITY_LOW);
    done(&result);
    plan.function =
        20; /* the libraries that the dataset calls, and nothing shows that it need not */
    plan.in_call = 20;
    plan.itself = 400;
    result = find(&plan);
    assert_int_equal(assert_one(&result, SW_FINDING_LOADER_TRANSFORM)->severity,
                     SW_SEVERITY_LOW);
    done(&result);
}

/* --- stages --- */

static void a_transform_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.decode = 25;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "Decode");
    assert_string_equal(it->file, "/src/train.py"); /* no sample knows better */
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(has_rule(it, "RULE-38") && has_rule(it, "RULE-02"));
    /* 60 ms a step, of which a tenth of 25 stays; a half; none. */
    assert_true(fabs(it->speedup - relieved(60, 22.5)) < 0.03);
    assert_true(it->low < 60.0 / (60 - 12.5) + 0.02);
    assert_true(it->high > 60.0 / (60 - 25.0) - 0.02);
    assert_true(advises(it, "a tenth"));
    done(&result);
    plan.decode = 16; /* the half of it: workers gain more than twice as much */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.decode = 5; /* among others */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.workers = 4; /* hidden behind training */
    plan.bits = SW_LOADER_PERSISTENT;
    plan.decode = 25;
    plan.wait = 0.2;
    assert_none(&plan);
}

/* A function that the dataset calls in a worker: many short calls in a loop, a few long ones, no loop at all. */
static void a_function_dominates(void **state)
{
    (void)state;
    static const char loop[] = "def parse(x):\n    for y in x:\n        out += f(y)\n";
    static const char plain[] = "def parse(x):\n    y = g(x)\n    out = f(y)\n";
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 1;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.compute = 5;
    plan.wait = 25;
    plan.function = 490;
    plan.in_call = 350;
    plan.source = loop;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_int_equal(it->line, 3);
    assert_true(fabs(number(it, "stage_share") - 0.98) < 0.01);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 3);
    done(&result);
    plan.in_call = 485; /* each call takes its time */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.in_call = 350;
    plan.source = plain;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.source = loop; /* workers in time: nothing to tell */
    plan.compute = 40;
    plan.wait = 0.2;
    assert_none(&plan);
    /* Nearly in time, and meanwhile training has no core for a third of each step, or has one. */
    plan.workers = 2;
    plan.wait = 4;
    plan.getitem = plan.getitem_cpu = 60;
    for (unsigned crowded = 0; crowded < 2; crowded++) {
        plan.delay = crowded ? 14 : 0;
        plan.cpu = 26;
        result = find(&plan);
        const sw_finding *first = NULL;
        const bool any = about_loaders(&result, &first);
        assert_int_equal(any && first->kind == SW_FINDING_LOADER_TRANSFORM, crowded);
        done(&result);
    }
}

/* The same on the training thread: the loop is seen, and its code gains more than a worker; a few long calls are work to move. */
static void a_function_dominates_in_the_training_thread(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.threads = 1;
    plan.compute = 30;
    plan.function = 490;
    plan.in_call = 350;
    plan.source = "def parse(x):\n    for y in x:\n        out += f(y)\n";
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.in_call = 485;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.in_call = 350; /* half of a sample is something else */
    plan.itself = 450;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* A list is searched for each element, by one native call after the other. One search, or another call, may have to be. */
static void a_list_is_searched(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        bool searched;
    } cases[] = {
        {"def parse(x):\n    y = 1\n    return [words.index(w) for w in x]\n", true},
        {"def parse(x):\n    for w in x:\n        out.append(words.index(w))\n", true},
        {"def parse(x):\n    y = 1\n    return words.index(x)\n", false},
        {"def parse(x):\n    y = 1\n    return [decode(w) for w in x]\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan = slow_samples;
        plan.cores = "2.00";
        plan.threads = 1;
        plan.line = 980;
        plan.others = 20;
        plan.source = cases[i].source;
        struct result result = find(&plan);
        const sw_finding *it =
            assert_one(&result, cases[i].searched ? SW_FINDING_LOADER_TRANSFORM
                                                  : SW_FINDING_LOADER_WORKERS);
        assert_true(!cases[i].searched || advises(it, "make a dict"));
        done(&result);
    }
}

/* What is made for each sample from nothing that differs; from the sample, kept, or drawn. */
static void made_again_for_each_sample(void **state)
{
    (void)state;
#define PARSE "def parse(x):\n    y = g(x)\n    out = f(y)\n"
    static const struct {
        const char *source;
        bool again;
    } cases[] = {
        {PARSE "def getitem(self, i):\n    w = parse(self.size)\n    return w * i\n",
         true},
        {PARSE "def getitem(self, i):\n    w = parse(self.rows[i])\n    return w\n",
         false},
        {PARSE "def getitem(self, i):\n    w = np.load(self.p)\n    return w[i]\n",
         false},
        {PARSE "def getitem(self, i):\n    self.w = parse(self.size)\n    return 1\n",
         false},
        {"def parse(x):\n    y = random(x)\n    out = f(y)\n"
         "def getitem(self, i):\n    w = parse(self.size)\n    return w * i\n",
         false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned which = 0; which < 3; which++) {
            const unsigned workers = which > 0;
            const bool stream =
                which == 2; /* goes on from where it was, whatever it is given */
            const bool again = cases[i].again && !stream;
            struct plan plan = slow_samples;
            plan.cores = "2.00";
            plan.threads = 1;
            plan.workers = workers;
            plan.bits = SW_LOADER_PERSISTENT | (stream ? SW_LOADER_ITERABLE : 0);
            plan.compute = workers ? 5 : 30;
            plan.wait = workers ? 25 : 30;
            plan.function = 490;
            plan.in_call = 485;
            plan.caller = 4;
            plan.source = cases[i].source;
            struct result result = find(&plan);
            const sw_finding *it = assert_one(&result, again ? SW_FINDING_LOADER_TRANSFORM
                                                             : SW_FINDING_LOADER_WORKERS);
            if (again) {
                assert_string_equal(it->name, "getitem");
                assert_int_equal(it->line, 5);
                assert_true(has_rule(it, "RULE-13") && advises(it, "__init__"));
            }
            done(&result);
        }
    }
#undef PARSE
}

/* A function that gives the same in each of many epochs; one that draws, and too few epochs. */
static void what_could_be_kept(void **state)
{
    (void)state;
    static const char same[] = "def parse(x):\n    y = g(x)\n    out = f(y)\n"
                               "def getitem(i):\n    return parse(lines[i])\n";
    static const char drawn[] = "def parse(x):\n    y = g(random(x))\n    out = f(y)\n"
                                "def getitem(i):\n    return parse(lines[i])\n";
    static const char given[] = "def parse(x):\n    y = g(x)\n    out = f(y)\n"
                                "def getitem(i):\n    return parse(shuffled(lines[i]))\n";
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 1;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.compute = 5;
    plan.wait = 25;
    plan.function = 490;
    plan.in_call = 485;
    plan.source = same;
    plan.caller = 4;
    plan.passes = 12;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_true(number(it, "epochs") == 12);
    assert_true(has_rule(it, "RULE-13") && advises(it, "keep the result"));
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 3);
    done(&result);
    plan.source = drawn;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.source = given;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.source = same;
    plan.passes = 3;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* One thread computes, as torch was told: the other core is free for a worker. */
static void threads_that_torch_tells_of(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    struct result result = find(&plan);
    const double unknown = assert_one(&result, SW_FINDING_LOADER_WORKERS)->speedup;
    done(&result);
    plan.threads = 1;
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > unknown + 0.1);
    /* Both are slower by a tenth when they compute at the same time. */
    assert_true(fabs(it->speedup - 60 / (1.1 * 31.5)) < 0.1);
    done(&result);
}

/* One line of a sample that gains more than workers do. */
static void a_line_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.compute = 5;
    plan.cores = "2.00";
    plan.line = 900;
    plan.others = 100;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_int_equal(it->line, 61);
    assert_true(fabs(number(it, "stage_share") - 0.9) < 0.01);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(fabs(it->speedup - relieved(35, 0.81 * 30)) < 0.1);
    done(&result);
    /* A file for each sample, from memory as it may be. */
    plan.source = "def parse(i):\n    x = 1\n    rows = np.load(path)\n";
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_int_equal(it->line, 3);
    assert_true(advises(it, "mmap_mode"));
    done(&result);
    plan.source = "def parse(i):\n    while x:\n        x = os.read(fd, 128)\n";
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_IO);
    done(&result);
    /* No source says so, but calls that were watched took most of the time. */
    plan.source = NULL;
    plan.reads = 5000;
    plan.small = 4500;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(advises(it, "90 % of the 5000 reads"));
    done(&result);
    plan.reads = plan.small = 0;
    plan.line = 400; /* of many */
    plan.others = 600;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.line = 600; /* workers hide it all */
    plan.others = 400;
    plan.compute = 30;
    plan.cores = "16.00";
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* What is collected while a batch is made goes with what made it. */
static void garbage_of_making(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.getitem = plan.getitem_cpu = 1;
    plan.collate = 39;
    plan.gc = 10;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_true(fabs(it->speedup - relieved(70, 0.9 * 39)) < 0.1);
    done(&result);
    plan.collate = 29; /* it comes elsewhere in the step */
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_true(fabs(it->speedup - relieved(70, 0.9 * 29)) < 0.1);
    done(&result);
}

static void collating_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.getitem = plan.getitem_cpu = 5;
    plan.collate = 25;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_string_equal(it->name, "pad");
    assert_true(fabs(it->speedup - relieved(60, 22.5)) < 0.03);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* What computes in libraries while a batch is collated is no code that could be cheaper: more workers hide it. */
static void collating_in_libraries(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.workers = 1;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.compute = 5;
    plan.wait = 25;
    plan.getitem = plan.getitem_cpu = 0.5;
    plan.collate = 29;
    plan.function = 490;
    plan.in_call = 350;
    plan.source = "def parse(x):\n    for y in x:\n        out += f(y)\n";
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_COLLATE);
    done(&result);
    plan.in_call = 440; /* Python fills lists, and one long call makes a tensor of them */
    plan.source = "def parse(x):\n    y = g(x)\n    out = f(y)\n";
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_COLLATE);
    done(&result);
    plan.in_call = 488;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    /* A tensor of a list is made element by element, by one call. Of a few numbers it is not what takes long. */
    static const char *const lists[] = {
        "def parse(x):\n    y = g(x)\n    out = torch.tensor([r[0] for r in y])\n",
        "def parse(x):\n    y = [g(r) for r in x]\n    out = torch.FloatTensor(y)\n",
        "def parse(x):\n    y = g(x)\n    out = f(y, torch.tensor([0.5, 0.5]))\n"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        plan.source = lists[i];
        result = find(&plan);
        const sw_finding *it = assert_one(&result, i < 2 ? SW_FINDING_LOADER_COLLATE
                                                         : SW_FINDING_LOADER_WORKERS);
        assert_true(i == 2 || strstr(it->advice[0], "np.stack"));
        done(&result);
    }
    plan.cores = "1.00"; /* no room for more: it is told, but may have to be */
    result = find(&plan);
    assert_int_equal(assert_one(&result, SW_FINDING_LOADER_COLLATE)->severity,
                     SW_SEVERITY_LOW);
    done(&result);
}

/* Workers that are nearly in time use up the cores: that alone is worth no other code, unless very much is gained. */
static void workers_that_are_nearly_in_time(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 2;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.wait = 2.5;
    plan.getitem = plan.getitem_cpu = 2;
    plan.collate = 30;
    assert_none(&plan);
    plan.collate = 120;
    plan.wait = 7;
    struct result result = find(&plan);
    (void)assert_one(&result, SW_FINDING_LOADER_COLLATE);
    done(&result);
}

static void samples_wait_for_files(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.compute = 10;
    plan.wait = 60;
    plan.getitem = 59.5;
    plan.getitem_cpu = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(number(it, "workers_proposed") > 2); /* more than cores */
    assert_true(number(it, "blocked_share") > 0.9);
    /* 13.5 ms are left of 70, and get faster by no more than what sleeping 60 % of the time costs: by 18 %. */
    assert_true(it->speedup > 6 && it->speedup < 6.6);
    assert_true(advises(it, "DataLoader(num_workers=0)"));
    done(&result);
    /* Calls that were watched say more: that they are small, and that all is read again. */
    plan.reads = 4000;
    plan.small = 3600;
    plan.times = 1;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(fabs(number(it, "io_s") - 1.5) < 0.01);
    assert_true(fabs(number(it, "io_read_mb") - 8) < 0.01);
    assert_true(fabs(number(it, "io_small_share") - 0.9) < 0.01);
    assert_true(advises(it, "90 % of the 4000 reads moved fewer than 4 KiB"));
    assert_true(advises(it, "/data/train.bin"));
    assert_false(advises(it, "times over"));
    done(&result);
    plan.small = 0;
    plan.times = 3;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(fabs(number(it, "io_times_read") - 3) < 0.01);
    assert_true(advises(it, "3.0 times over"));
    assert_true(has_rule(it, "RULE-13"));
    done(&result);
    plan.reads = 0;
    plan.getitem_cpu = plan.getitem; /* it computes */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* Small batches from workers: handing them over takes longer than making them. */
static void batches_too_small_to_hand_over(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.workers = 2;
    plan.compute = 1;
    plan.wait = 1;
    plan.take = 0.95;
    plan.getitem = plan.getitem_cpu = 0.2;
    plan.collate = 0.01;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_MAIN_PROCESS);
    assert_true(has_rule(it, "RULE-09"));
    assert_true(advises(it, "DataLoader(num_workers=2) \xE2\x86\x92 num_workers=0"));
    assert_true(advises(it, "batch_size=8 \xE2\x86\x92 32"));
    assert_false(advises(it, "persistent_workers"));
    assert_true(it->speedup > 1.3 && it->speedup < 1.8);
    done(&result);
    plan.getitem = plan.getitem_cpu = 1.5; /* dear enough to make elsewhere */
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_MAIN_PROCESS);
    assert_false(advises(it, "num_workers=0"));
    done(&result);
}

/* Two workers and the training thread on two cores, which they have all of: the thread waits for its own workers, and nobody else
 * is in the way of what is left. */
static void workers_that_have_all_the_cores(void **state)
{
    (void)state;
    struct plan plan = {.steps = 50,
                        .epochs = 2,
                        .compute = 54.5,
                        .wait = 37.5,
                        .cores = "2.00",
                        .workers = 2,
                        .getitem = 0.5,
                        .getitem_cpu = 0.5,
                        .collate = 150,
                        .cpu = 29,
                        .delay = 29,
                        .threads = 1};
    struct result result = find(&plan);
    const double alone = assert_one(&result, SW_FINDING_LOADER_COLLATE)->speedup;
    /* What is left is the 29 ms that training computes. */
    assert_true(alone > 3.2 && alone < 3.85);
    done(&result);
}

/* Workers that wait for the network compute little: that they are late when they wake up does not say that others have the
 * cores, for the training thread computes most of the time and never waits for one. */
static void workers_that_wake_up_late(void **state)
{
    (void)state;
    struct plan plan = {.steps = 50,
                        .epochs = 2,
                        .compute = 32,
                        .wait = 23,
                        .cores = "2.00",
                        .workers = 2,
                        .getitem = 109.5,
                        .getitem_cpu = 5,
                        .collate = 0.5,
                        .cpu = 33,
                        .delay = 0.2,
                        .faults = 2000,
                        .function = 60,
                        .asleep = 930,
                        .threads = 1};
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(it->speedup > 1.6 && it->low > 1);
    done(&result);
}

/* A batch that is made in 2 ms may cost as much to hand over; of one that takes 8 ms more stays. */
static void batches_that_cost_as_much_elsewhere(void **state)
{
    (void)state;
    for (unsigned times = 1; times <= 4; times += 3) {
        struct plan plan = slow_samples;
        plan.cores = "2.00";
        plan.threads = 1;
        plan.compute = 3.2 * times;
        plan.wait = 2 * times;
        plan.getitem = plan.getitem_cpu = 1.9 * times;
        plan.collate = 0.1 * times;
        struct result result = find(&plan);
        const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
        assert_int_equal(it->severity > SW_SEVERITY_LOW, times > 1);
        done(&result);
    }
}

/* A second worker beside training on two cores gains the last bit of them, or not; with room for it, more. */
static void more_processes_than_cores(void **state)
{
    (void)state;
    for (unsigned room = 0; room < 2; room++) {
        struct plan plan = slow_samples;
        plan.cores = room ? "4.00" : "2.00";
        plan.threads = 1;
        plan.workers = 1;
        plan.bits = SW_LOADER_PERSISTENT;
        plan.compute = 18;
        plan.wait = 12.5;
        plan.getitem = plan.getitem_cpu = 30;
        struct result result = find(&plan);
        const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
        assert_int_equal(it->severity > SW_SEVERITY_LOW, room);
        assert_true(it->speedup > 1.1);
        done(&result);
    }
}

/* Two cores are no faster than twice one, and may be slower than that when both compute. */
static void two_cores_that_both_compute(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.threads = 1;
    plan.compute = 21;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 1.5 && it->speedup < 1.7);
    assert_true(it->low > 1 && it->low < 1.4);
    done(&result);
    /* Of four, one stays free. */
    plan.cores = "4.00";
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 1.8 && it->low > 1.4);
    done(&result);
}

/* Training and its worker take turns on the one core that the process has bound itself to; with both that it had each has one. */
static void a_worker_on_the_core_of_the_training(void **state)
{
    (void)state;
    for (unsigned bound = 1; bound <= 2; bound++) {
        struct plan plan = slow_samples;
        plan.cores = "2.00";
        plan.workers = 1;
        plan.threads = 1;
        plan.bound = bound;
        plan.wait = 15;
        plan.getitem = 44;
        plan.getitem_cpu = 27;
        plan.collate = 0.1;
        plan.cpu = 18;
        plan.delay = 16;
        struct result result = find(&plan);
        const sw_finding *it = NULL;
        for (size_t i = 0; i < result.count; i++) {
            it = result.list[i].kind == SW_FINDING_CPU_OVERSUBSCRIBED ? &result.list[i]
                                                                      : it;
        }
        assert_int_equal(it != NULL, bound == 1);
        if (it) {
            assert_true(advises(it, "bound itself to 1 of 2 cores"));
            /* 45 ms become the 27 that the worker needs. */
            assert_true(it->speedup > 1.5 && it->speedup < 1.8);
        }
        done(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_have_all_the_cores),
        cmocka_unit_test(a_worker_on_the_core_of_the_training),
        cmocka_unit_test(workers_that_wake_up_late),
        cmocka_unit_test(two_cores_that_both_compute),
        cmocka_unit_test(more_processes_than_cores),
        cmocka_unit_test(batches_that_cost_as_much_elsewhere),
        cmocka_unit_test(workers_make_batches_ahead),
        cmocka_unit_test(one_epoch_makes_nothing_again),
        cmocka_unit_test(more_workers_than_before),
        cmocka_unit_test(a_loader_that_keeps_up_is_fine),
        cmocka_unit_test(chance_and_warm_up_are_no_evidence),
        cmocka_unit_test(a_busy_machine_is_no_fault_of_the_loader),
        cmocka_unit_test(a_busy_machine_makes_gains_doubtful),
        cmocka_unit_test(steps_that_sleep_need_no_core),
        cmocka_unit_test(one_core_has_no_room_for_workers),
        cmocka_unit_test(cores_that_are_used_up),
        cmocka_unit_test(a_transform_dominates),
        cmocka_unit_test(a_line_dominates),
        cmocka_unit_test(a_function_dominates),
        cmocka_unit_test(a_function_dominates_in_the_training_thread),
        cmocka_unit_test(a_list_is_searched),
        cmocka_unit_test(made_again_for_each_sample),
        cmocka_unit_test(what_could_be_kept),
        cmocka_unit_test(threads_that_torch_tells_of),
        cmocka_unit_test(garbage_of_making),
        cmocka_unit_test(collating_dominates),
        cmocka_unit_test(collating_in_libraries),
        cmocka_unit_test(workers_that_are_nearly_in_time),
        cmocka_unit_test(samples_wait_for_files),
        cmocka_unit_test(batches_too_small_to_hand_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
