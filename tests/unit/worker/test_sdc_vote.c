/* Which ranks a check for silent data corruption suspects, of every layout and wherever a rank computes wrongly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "worker/train/sdc_vote.h"

enum { MOST_PLACES = 32, MOST_DIGESTS = 9, SIZE = MOST_PLACES * MOST_DIGESTS };

struct check {
	struct wlb_sdc_shape shape;
	uint64_t first[SIZE], second[SIZE];
	struct wlb_sdc_suspect suspects[MOST_PLACES];
};

static int size_of(const struct check *c)
{
	return c->shape.layout.tp * c->shape.layout.cp * c->shape.layout.pp;
}

static uint64_t *digest(const struct check *c, uint64_t *digests, int place, int number)
{
	return &digests[place * wlb_sdc_digests(&c->shape) + number];
}

/* All replicas have computed the same, twice. */
static void begin(struct check *c, int tp, int cp, int pp, int dp, int chunks)
{
	memset(c, 0, sizeof(*c));
	c->shape = (struct wlb_sdc_shape){.layout = {tp, cp, pp, dp}, .chunks = chunks, .by_replicas = 1};
	for (int place = 0; place < dp * size_of(c); place++)
		for (int d = 0; d < wlb_sdc_digests(&c->shape); d++) {
			uint64_t value = 100 * (uint64_t)(place % size_of(c)) + (uint64_t)d;
			*digest(c, c->first, place, d) = *digest(c, c->second, place, d) = value;
		}
}

/* When the digest is computed: the forward passes, the backward passes, the gradients of weights. */
static int order(const struct check *c, int place, int d)
{
	int chunks = c->shape.chunks, pp = c->shape.layout.pp, all = chunks * pp;
	int stage = wlb_layout_coordinates(&c->shape.layout, place).pp;
	return d == 2 * chunks ? 2 * all : d < chunks ? d * pp + stage : 2 * all - 1 - ((d - chunks) * pp + stage);
}

/* The replica of the place goes wrong there, and so does all that follows. */
static void go_wrong(const struct check *c, uint64_t *digests, int place, int d, uint64_t by)
{
	int begin = place / size_of(c) * size_of(c), from = order(c, place, d);
	for (int other = begin; other < begin + size_of(c); other++)
		for (int i = 0; i < wlb_sdc_digests(&c->shape); i++)
			if (d == 2 * c->shape.chunks ? other == place && i == d : order(c, other, i) >= from)
				*digest(c, digests, other, i) += by;
}

static int vote(struct check *c)
{
	return wlb_sdc_vote(&c->shape, c->first, c->second, c->suspects);
}

static void expect_none_but(const struct check *c, int from, int to)
{
	for (int place = 0; place < c->shape.layout.dp * size_of(c); place++)
		assert_int_equal(c->suspects[place].count > 0, place >= from && place < to);
}

static void replicas_that_agree(void **state)
{
	struct check c;
	(void)state;
	begin(&c, 2, 2, 2, 4, 2);
	assert_int_equal(wlb_sdc_differ(&c.shape, c.first), 0);
	assert_int_equal(vote(&c), 0);
	expect_none_but(&c, 0, 0);
}

/* Any digest of any rank: the ranks of its stage are suspected, or it alone for gradients, which go nowhere. */
static void one_replica_of_three(void **state)
{
	static const int shapes[][4] = {{1, 1, 1, 1}, {1, 1, 2, 1}, {2, 1, 1, 1},
	                                {2, 2, 2, 1}, {1, 1, 2, 2}, {2, 1, 4, 3}};
	(void)state;
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct check c;
		begin(&c, shapes[s][0], shapes[s][1], shapes[s][2], 3, shapes[s][3]);
		int size = size_of(&c), share = shapes[s][0] * shapes[s][1], digests = wlb_sdc_digests(&c.shape);
		for (int place = 0; place < 3 * size; place++)
			for (int d = 0; d < digests; d++) {
				begin(&c, shapes[s][0], shapes[s][1], shapes[s][2], 3, shapes[s][3]);
				go_wrong(&c, c.first, place, d, 7);
				go_wrong(&c, c.second, place, d, 7);
				assert_int_equal(wlb_sdc_differ(&c.shape, c.first), 1);
				int alone = d == digests - 1, first = alone ? place : place / share * share;
				assert_int_equal(vote(&c), alone ? 1 : share);
				expect_none_but(&c, first, first + (alone ? 1 : share));
				assert_int_equal(c.suspects[place].first, first);
				assert_int_equal(c.suspects[place].other % size, place % size);
				assert_true(c.suspects[place].other / size != place / size);
			}
	}
}

static void two_replicas_are_suspected_together(void **state)
{
	struct check c;
	(void)state;
	begin(&c, 1, 1, 2, 2, 1);
	go_wrong(&c, c.first, 2, 0, 7);
	go_wrong(&c, c.second, 2, 0, 7);
	assert_int_equal(vote(&c), 2);
	assert_int_equal(c.suspects[0].count, 2);
	assert_int_equal(c.suspects[2].count, 2);
	assert_int_equal(c.suspects[2].first, 0);
	assert_int_equal(c.suspects[0].other, 2);
	assert_int_equal(c.suspects[1].count + c.suspects[3].count, 0);
}

/* Also where that shows the second time alone, and where there is one replica or replicas are not compared. */
static void a_replica_that_differs_from_itself(void **state)
{
	struct check c;
	(void)state;
	for (int dp = 1; dp <= 3; dp++) {
		for (int by_replicas = 0; by_replicas < 2; by_replicas++) {
			begin(&c, 1, 1, 2, dp, 1);
			c.shape.by_replicas = by_replicas;
			go_wrong(&c, dp == 2 ? c.second : c.first, 2 * dp - 1, 1, 7);
			assert_int_equal(vote(&c), 1);
			expect_none_but(&c, 2 * dp - 1, 2 * dp);
			assert_int_equal(c.suspects[2 * dp - 1].other, 2 * dp - 1);
		}
	}
	begin(&c, 1, 1, 1, 3, 1);
	c.shape.by_replicas = 0;
	go_wrong(&c, c.first, 1, 0, 7);
	go_wrong(&c, c.second, 1, 0, 7);
	assert_int_equal(vote(&c), 0); /* replicas may differ */
}

static void several_replicas(void **state)
{
	struct check c;
	(void)state;
	begin(&c, 1, 1, 1, 5, 1);
	go_wrong(&c, c.first, 1, 0, 7);
	go_wrong(&c, c.second, 1, 0, 7);
	go_wrong(&c, c.first, 4, 2, 9);
	go_wrong(&c, c.second, 4, 2, 9);
	assert_int_equal(vote(&c), 2); /* apart: each differs from the three that agree */
	assert_int_equal(c.suspects[1].count, 1);
	assert_int_equal(c.suspects[4].count, 1);
	assert_int_equal(c.suspects[4].first, 4);
	go_wrong(&c, c.first, 0, 0, 11);
	go_wrong(&c, c.second, 0, 0, 11);
	assert_int_equal(vote(&c), 5); /* no three agree */
	expect_none_but(&c, 0, 5);
}

/* Every stage computes a part of the head, which shows at the last stage. */
static void a_head_that_stages_share(void **state)
{
	struct check c;
	(void)state;
	begin(&c, 1, 1, 2, 3, 1);
	c.shape.is_head_shared = 1;
	go_wrong(&c, c.first, 3, 1, 7);
	go_wrong(&c, c.second, 3, 1, 7);
	assert_int_equal(vote(&c), 2);
	expect_none_but(&c, 2, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_that_agree),
		cmocka_unit_test(one_replica_of_three),
		cmocka_unit_test(two_replicas_are_suspected_together),
		cmocka_unit_test(a_replica_that_differs_from_itself),
		cmocka_unit_test(several_replicas),
		cmocka_unit_test(a_head_that_stages_share),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
