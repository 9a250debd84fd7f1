#include "worker/train/intact_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/input.h"

/* The data that the file functions below use. They are on the heap, since a thread that makes no progress keeps using
 * them. */
struct search {
	struct wlb_trainer *trainer;
	wlb_checkpoint_share_check *check;
	const char *damaged_file;
	int is_damaged;       /* the part that this rank reads */
	struct wlb_error why; /* where it is damaged */
};

/* A wlb_file_function. That the part is damaged is no failure. A file that rank 0 has seen and this rank does not, or
 * not whole, is no damage: an older checkpoint would cost steps that are not lost. Shards that an index lists rank 0
 * has not seen. */
static int verify(void *context, struct wlb_error *error)
{
	struct search *s = context;
	const struct wlb_launch *launch = s->trainer->launch;
	int rc = s->check(s->trainer->plan->checkpoint, launch->rank, launch->size, &s->why);
	s->is_damaged = rc == WLB_DAMAGED;
	if (rc < 0)
		*error = s->why;
	return rc < 0 ? WLB_UNREADABLE : 0;
}

/* A wlb_file_function of rank 0. */
static int find_older(void *context, struct wlb_error *error)
{
	struct search *s = context;
	struct wlb_trainer *t = s->trainer;
	if (s->damaged_file != NULL) {
		wlb_checkpoint_name_damage(s->damaged_file, &s->why);
		wlb_checkpoint_skip(t->plan->checkpoint, s->why.message);
	}
	t->file_failure = wlb_train_plan_fall_back(t->options, t->plan, error);
	return t->file_failure;
}

/* Collective. Sets *damaged, the same on all ranks. The first rank that found damage says what. */
static int verify_together(struct search *s, int *damaged, struct wlb_error *error)
{
	struct wlb_trainer *t = s->trainer;
	int rc = wlb_work_with_files(&t->files, verify, s, error);
	*damaged = 0;
	if (rc < 0)
		return rc;
	rc = wlb_agree(t->world, s->is_damaged ? -1 : 0, &s->why);
	if (rc == WLB_FAILED_HERE)
		*error = s->why;
	if (rc != WLB_FAILED_EVERYWHERE)
		return rc;
	*damaged = 1;
	if (s->is_damaged && s->why.message[0] != '\0')
		wlb_checkpoint_skip(t->plan->checkpoint, s->why.message);
	return 0;
}

/* Collective. */
static int take_older(struct search *s, struct wlb_error *error)
{
	struct wlb_trainer *t = s->trainer;
	int is_first = t->launch->rank == 0;
	char key[48]; /* each older one is of another step */
	snprintf(key, sizeof(key), "wlb.older.%lld", (long long)t->plan->facts.step);
	int rc = wlb_work_with_files(&t->files, is_first ? find_older : NULL, s, error);
	if (rc == WLB_FAILED_EVERYWHERE)
		return wlb_trainer_judge_failure(t, t->file_failure == -1, error);
	if (rc == 0 && wlb_launch_share(t->launch, key, t->plan, sizeof(*t->plan), error) < 0)
		rc = WLB_FAILED_HERE;
	if (rc == 0)
		wlb_record_attempt(t->recorder, t->plan, t->options);
	return rc;
}

/* Collective. Returns NULL with *rc set to a failure of all ranks, or of the collective. */
static struct search *new_search(struct wlb_trainer *t, int *rc, struct wlb_error *error)
{
	struct search *s = calloc(1, sizeof(*s));
	*rc = wlb_agree(t->world, s != NULL ? 0 : wlb_fail(error, "out of memory to resume"), error);
	if (s != NULL)
		s->trainer = t;
	if (*rc == 0)
		return s;
	free(s);
	return NULL;
}

int wlb_trainer_verify(struct wlb_trainer *t, wlb_checkpoint_share_check *check, int *damaged, struct wlb_error *error)
{
	int rc;
	struct search *s = new_search(t, &rc, error);
	if (rc == 0) {
		s->check = check;
		rc = verify_together(s, damaged, error);
	}
	if (rc != WLB_FAILED_HERE)
		free(s);
	return rc;
}

int wlb_trainer_take_older(struct wlb_trainer *t, const char *damaged_file, struct wlb_error *error)
{
	int rc;
	struct search *s = new_search(t, &rc, error);
	if (rc == 0) {
		s->damaged_file = damaged_file;
		rc = take_older(s, error);
	}
	if (rc != WLB_FAILED_HERE)
		free(s);
	return rc;
}
