/* What is told from the source of a program: loops whose rounds need nothing of each other, results of which a part is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/source_chance.h"
#include "analyze/source_inputs.h"
#include "analyze/source_picks.h"
#include "analyze/source_rounds.h"

/* Bodies of loops whose rounds could be one operation, and of those that need each other, or may. */
static void rounds_of_a_loop(void **state)
{
    (void)state;
    static const char *const apart[] = {
        "losses.append(F.relu(a[i] - b[i]))",
        "near = 1 - torch.dot(a[i], b[i])\n        losses.append(near)",
        "total += cost(a[i], b[i])",
        "total = total + cost(a[i],\n            b[i])  # of a pair",
        "out[i] = (a[i] * b).sum()",
        "near = a[i]\n        if len(near) > 1:\n            far = near.roll(1)\n"
        "            losses.append(far)",
        "for j in range(3):\n            losses.append(a[i] @ b[j])",
    };
    static const char *const together[] = {
        "h = torch.tanh(a[i] + h)\n        losses.append(h)", /* a recurrence */
        "losses.append(losses[-1] * a[i])",
        "out[i] = out[i - 1] + a[i]",
        "total += a[i]\n        losses.append(total)",
        "if i > 0:\n            h = a[i]\n        losses.append(h)", /* or that of before */
        "if i > 0: h = cost(h, a[i])\n        losses.append(cost(a[i], b))",
        "losses.append((h := cost(h, a[i])))",
        "losses.append(cell(a[i]))", /* who knows what it keeps */
        "losses.append(self.cell(a[i]))",
        "losses.append(world.step(a[i]))",
        "self.h = cost(a[i], b)",
        "near = cost(a[i], state)",
        "x = a[i]; h = cost(x, h)",
        "out = cost(a[i], b)\n        if out > 3:\n            break",
        "push(a[i])",
        "while more(a):\n            total += cost(a, b)",
    };
    char text[600];
    for (unsigned other = 0; other < 2; other++) {
        const char *const *list = other ? together : apart;
        const size_t count =
            other ? sizeof together / sizeof together[0] : sizeof apart / sizeof apart[0];
        for (size_t i = 0; i < count; i++) {
            snprintf(text, sizeof text,
                     "import torch\n"
                     "def cost(a, b):\n"
                     "    return a @ b\n"
                     "def loss(a, b, h):\n"
                     "    for i in range(len(a)):\n"
                     "        %s\n"
                     "    return torch.stack(losses)\n",
                     list[i]);
            const bool is = sw__source_rounds_apart(text, strlen(text), 4, 6);
            if (is == other) {
                print_error("%s\n", list[i]);
            }
            assert_int_equal(is, !other);
        }
    }
    static const struct {
        const char *text;
        bool apart;
    } comprehensions[] = {
        {"return torch.stack([cost(x, y) for x, y in zip(a, b)]).mean()", true},
        {"return sum(cost(x, b)\n        for x in a)", true},
        {"return [cost(x, h := cost(x, h)) for x in a]", false},
        {"return [cell(x, b) for x in a]", false},
        {"return [cost(x, state) for x in a]", false},
        {"return cost(a, b)", false},
        {"return [\"a for b in\"]", false},
    };
    for (size_t i = 0; i < sizeof comprehensions / sizeof comprehensions[0]; i++) {
        snprintf(text, sizeof text,
                 "import torch\ndef cost(a, b):\n    return a @ b\ndef loss(a, b, h):\n"
                 "    %s\n",
                 comprehensions[i].text);
        assert_int_equal(sw__source_rounds_apart(text, strlen(text), 4, 5),
                         comprehensions[i].apart);
    }
    static const char loop[] = "for x in y:\n    z.append(x)\n";
    assert_true(sw__source_rounds_apart(loop, strlen(loop), 0, 1));
    assert_false(sw__source_rounds_apart(loop, strlen(loop), 0, 9));
    assert_false(sw__source_rounds_apart(loop, 11, 0, 1));
    assert_false(sw__source_rounds_apart("", 0, 0, 1));
}

/* Lines of a function, the last of which calls something: whether chance has a hand in the function, and in what is called. */
static void told_by_chance(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        unsigned line; /* of the call */
        bool drawn, given;
    } cases[] = {
        {"row = parse(self.lines[i])", 3, false, false},
        {"row = parse(self.lines[i])  # no random rows", 3, false, false},
        {"x = decode(self.files[i])\n    return flip(x) if rand() < 0.5 else x", 3, true,
         false},
        {"x = shift(self.x[i], random.uniform(0, 1))", 3, true, true},
        {"at = rng.integers(9)\n    size = at + 3\n    x = crop(self.x[i], size)", 5,
         true, true},
        {"if random.random() < 0.5:\n        x = mirror(x)\n    y = blur(x)", 5, true,
         true},
        {"if random.random() < 0.5:\n        x = mirror(x)\n    y = blur(self.x[i])", 5,
         true, false},
        {"x = load(i).permute(2, 0, 1)", 3, false, false},
    };
    char text[400];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text,
                 "@cached\ndef __getitem__(self, i):\n    %s\n\ndef noise():\n    pass\n",
                 cases[i].body);
        const bool drawn = sw__source_by_chance(text, strlen(text), 1);
        const bool given = sw__source_uses_chance(text, strlen(text), 1, cases[i].line);
        if (drawn != cases[i].drawn || given != cases[i].given) {
            print_error("%s\n", cases[i].body);
        }
        assert_int_equal(drawn, cases[i].drawn);
        assert_int_equal(given, cases[i].given);
    }
    /* What cannot be read may be anything. */
    assert_true(sw__source_by_chance("x = 1\n", 6, 1));
    assert_true(sw__source_uses_chance("", 0, 1, 1));
    assert_true(sw__source_by_chance("def f(rng):\n    pass\n", 21, 1));
}

/* What is taken of the result of a call. */
static void parts_of_a_result(void **state)
{
    (void)state;
    static const char *const some[] = {
        "return self.head(x)[masked]",
        "return self.head(norm(x, \")\"))[is_mask.bool()]  # those alone",
        "return self.head(x)[tokens == MASK]",
        "return self.head(\n            x\n        )[labels != -100]",
        "return self.head(x)[:, -1]",
        "return self.head(x)[:, 0, :]",
        "return self.head(x)[:, masked]",
        "return self.head(x).view(-1, 6000)[mask.view(-1)]",
        "y = self.head(x)\n        return y[mask]",
        "y = self.head(x)\n        y = y[mask]\n        return y",
        "y = self.head(x)  # all\n\n        return f(y[:, -1], y[:, 0, :])",
    };
    static const char *const all[] = {
        "return self.head(x)",
        "return self.head(x[masked])",
        "return self.body(x)[masked]",
        "return self.overhead(x)[masked]",
        "return self.head(x)[rows]", /* some may come several times */
        "return self.head(x)[edges[0]]",
        "return self.head(x)[:, 0]", /* the one number of each */
        "return self.head(x)[:, None]",
        "return self.head(x)[..., :3]",
        "return self.head(x)[:, 1:]",
        "return self.head(x)[padding_mask]", /* most of them */
        "return self.head(x)[tokens != PAD]",
        "return self.head(x)[~mask]",
        "return self.head(x)[a, b, c, d, masked]",
        "return self.head(x)[masked",
        "y = self.head(x)\n        return y",
        "y = self.head(x)\n        return y[mask], y.mean()",
        "y = self.head(x) + z\n        return y[mask]",
        "y += self.head(x)\n        return y[mask]",
        "self.y = self.head(x)\n        return y[mask]",
        "y = self.head(x)\n    def other(self, y):\n        return y[mask]",
    };
    char text[400];
    for (unsigned other = 0; other < 2; other++) {
        const char *const *list = other ? all : some;
        const size_t count =
            other ? sizeof all / sizeof all[0] : sizeof some / sizeof some[0];
        for (size_t i = 0; i < count; i++) {
            snprintf(text, sizeof text,
                     "class Net:\n    def forward(self):\n        %s\n", list[i]);
            const bool is = sw__source_picks(text, strlen(text), 3, "head");
            if (is == other) {
                print_error("%s\n", list[i]);
            }
            assert_int_equal(is, !other);
        }
    }
    assert_false(sw__source_picks(text, strlen(text), 0, "head"));
    assert_false(sw__source_picks(text, strlen(text), 90, "head"));
    assert_false(sw__source_picks("", 0, 1, "head"));
}

/* What a statement of a loop has from another one, and what it has from elsewhere. */
static void what_follows_from_another_line(void **state)
{
    (void)state;
    static const char text[] = "def collect(env, views):\n"
                               "    before = net(env)\n"
                               "    for view in views:\n"
                               "        crop = cut(view, state)\n"
                               "        policy, value = net(crop)\n"
                               "        action = policy.sample()\n"
                               "        # env.step(value)\n"
                               "        env.step(action)\n"
                               "        state = value + 1\n"
                               "        other = load(view,\n"
                               "                     before)\n"
                               "        values.append(value)\n"
                               "    env.step(action)\n";
    static const bool follows[] = {
        [4] = true, [6] = true, [8] = true, [9] = true, [12] = true};
    for (uint32_t line = 0; line < 15; line++) {
        const bool is = sw__source_follows(text, sizeof text - 1, 1, 5, line);
        const bool expected = line < sizeof follows && follows[line];
        if (line != 5 && is != expected) {
            print_message("line %u\n", line);
        }
        assert_true(line == 5 || is == expected);
    }
    assert_false(
        sw__source_follows(text, sizeof text - 1, 1, 8, 12)); /* it gives nothing */
    assert_false(sw__source_follows(text, sizeof text - 1, 1, 90, 8));
}

/* Loops whose rounds go on from each other and are given nothing else, and others. */
static void what_goes_on(void **state)
{
    (void)state;
    static const struct {
        const char *head, *body[3]; /* the last is the line that is asked for */
        bool goes_on;
    } cases[] = {
        {"for t in range(n):", {"a[t] = act(s)", "", "s, r[t] = world.step(a[t])"}, true},
        {"for t in range(n):", {"", "", "s = step(s)"}, true},
        {"for t in range(n):", {"states[t] = s", "", "s = step(s)"}, true},
        {"while not done:", {"a = act(s)", "", "s, done = world.step(a)"}, true},
        /* Something is picked, or gone through. */
        {"for t in range(n):", {"x = rows[t]", "", "w = step(w, x)"}, false},
        {"for t in range(n):", {"", "", "w = step(w, rows[t])"}, false},
        {"for t in range(n):", {"", "", "w = step(w, t)"}, false},
        {"for t in range(n):", {"for x in rows:", "    g = f(x)", "w = step(w)"}, false},
        {"for x in rows:", {"", "", "w = step(w, x)"}, false},
        /* No round needs another, or nothing is given. */
        {"for t in range(n):", {"", "", "out[t] = f(y)"}, false},
        {"for t in range(n):", {"a = act(z)", "", "s = world.step(a)"}, false},
        {"for t in range(n):", {"", "", "total += f(y)"}, false},
        {"for t in range(n):", {"", "", "world.step(a)"}, false},
        {"if n:", {"", "", "s = step(s)"}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "def roll(n):\n    %s\n        %s\n        %s\n        %s\n"
                 "    return s\n",
                 cases[i].head, cases[i].body[0], cases[i].body[1], cases[i].body[2]);
        const bool is = sw__source_goes_on(text, strlen(text), 1, 5);
        if (is != cases[i].goes_on) {
            print_message("%s", text);
        }
        assert_int_equal(is, cases[i].goes_on);
        assert_false(sw__source_goes_on(text, strlen(text), 1, 2));
        assert_false(sw__source_goes_on(text, strlen(text), 1, 6));
        assert_false(sw__source_goes_on(text, strlen(text), 1, 90));
    }
    assert_false(sw__source_goes_on("", 0, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_a_loop),
        cmocka_unit_test(told_by_chance),
        cmocka_unit_test(parts_of_a_result),
        cmocka_unit_test(what_follows_from_another_line),
        cmocka_unit_test(what_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
