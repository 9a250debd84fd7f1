#include "coordinator/wlbd/http/budget.h"

#include <search.h>
#include <stdlib.h>

struct user {
	uid_t uid;
	int count;
	size_t bytes;
};

struct wlbd_budget {
	struct wlbd_budget_limits limits;
	void *users; /* tsearch(3) by uid */
	size_t bytes;
};

static int by_uid(const void *a, const void *b)
{
	const struct user *x = a;
	const struct user *y = b;
	return (x->uid > y->uid) - (x->uid < y->uid);
}

struct wlbd_budget *wlbd_budget_new(const struct wlbd_budget_limits *limits)
{
	struct wlbd_budget *budget = calloc(1, sizeof(*budget));
	if (budget != NULL)
		budget->limits = *limits;
	return budget;
}

void wlbd_budget_free(struct wlbd_budget *budget)
{
	if (budget == NULL)
		return;
	tdestroy(budget->users, free);
	free(budget);
}

static struct user *find(const struct wlbd_budget *budget, uid_t uid)
{
	struct user key = {.uid = uid};
	struct user **found = tfind(&key, &budget->users, by_uid);
	return found != NULL ? *found : NULL;
}

/* Returns NULL if out of memory. */
static struct user *find_or_add(struct wlbd_budget *budget, uid_t uid)
{
	struct user *user = find(budget, uid);
	if (user != NULL || (user = calloc(1, sizeof(*user))) == NULL)
		return user;
	user->uid = uid;
	if (tsearch(user, &budget->users, by_uid) != NULL)
		return user;
	free(user);
	return NULL;
}

static void remove_idle(struct wlbd_budget *budget, struct user *user)
{
	if (user->count > 0 || user->bytes > 0)
		return;
	tdelete(user, &budget->users, by_uid);
	free(user);
}

enum wlbd_budget_answer wlbd_budget_enter(struct wlbd_budget *budget, uid_t uid)
{
	struct user *user = find_or_add(budget, uid);
	if (user == NULL)
		return WLBD_BUDGET_FULL;
	if (user->count >= budget->limits.user_count)
		return WLBD_BUDGET_USER_FULL;
	user->count++;
	return WLBD_BUDGET_TAKEN;
}

void wlbd_budget_leave(struct wlbd_budget *budget, uid_t uid)
{
	struct user *user = find(budget, uid);
	if (user == NULL)
		return;
	user->count--;
	remove_idle(budget, user);
}

enum wlbd_budget_answer wlbd_budget_take(struct wlbd_budget *budget, uid_t uid, size_t bytes)
{
	const struct wlbd_budget_limits *limits = &budget->limits;
	struct user *user = bytes > 0 ? find_or_add(budget, uid) : NULL;
	enum wlbd_budget_answer answer = WLBD_BUDGET_TAKEN;
	if (bytes == 0)
		return answer;
	if (user == NULL || bytes > limits->all_bytes - budget->bytes)
		answer = WLBD_BUDGET_FULL;
	else if (bytes > limits->user_bytes - user->bytes)
		answer = WLBD_BUDGET_USER_FULL;
	if (answer == WLBD_BUDGET_TAKEN) {
		user->bytes += bytes;
		budget->bytes += bytes;
	} else if (user != NULL) {
		remove_idle(budget, user);
	}
	return answer;
}

void wlbd_budget_give(struct wlbd_budget *budget, uid_t uid, size_t bytes)
{
	struct user *user = bytes > 0 ? find(budget, uid) : NULL;
	if (user == NULL)
		return;
	user->bytes -= bytes;
	budget->bytes -= bytes;
	remove_idle(budget, user);
}
