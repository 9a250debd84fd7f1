#include "coordinator/wlbd/budget.h"

#include <search.h>
#include <stdbool.h>
#include <stdlib.h>

enum { FREE_SHARE = 8 };

struct user {
	uid_t uid;
	size_t count;
	size_t bytes;
};

struct wlbd_budget {
	struct wlbd_budget_limits limits;
	void *users; /* tsearch(3) by uid */
	size_t count;
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

static bool has_reserve(const struct wlbd_budget *budget, uid_t uid)
{
	return uid == 0 || (budget->limits.slurm_user != NULL && uid == *budget->limits.slurm_user);
}

/* `own` is what the user holds, `all` what all users hold. Of the last eighth a user gets more only while the user then
 * holds no more than what stays free. */
static enum wlbd_budget_answer judge(bool has_reserve, size_t more, size_t own, size_t own_max, size_t all,
                                     size_t all_max, size_t reserved)
{
	size_t max = has_reserve ? all_max : all_max - reserved;
	size_t left = all < max ? max - all : 0;
	if (more > left)
		return WLBD_BUDGET_FULL;
	if (more > own_max - own)
		return WLBD_BUDGET_USER_FULL;
	bool is_fair = left - more >= max / FREE_SHARE || own + more <= left - more;
	return has_reserve || is_fair ? WLBD_BUDGET_TAKEN : WLBD_BUDGET_FULL;
}

enum wlbd_budget_answer wlbd_budget_enter(struct wlbd_budget *budget, uid_t uid)
{
	const struct wlbd_budget_limits *limits = &budget->limits;
	struct user *user = find_or_add(budget, uid);
	if (user == NULL)
		return WLBD_BUDGET_FULL;
	enum wlbd_budget_answer answer = judge(has_reserve(budget, uid), 1, user->count, limits->user_count,
	                                       budget->count, limits->all_count, limits->reserved_count);
	if (answer == WLBD_BUDGET_TAKEN) {
		user->count++;
		budget->count++;
	}
	remove_idle(budget, user);
	return answer;
}

void wlbd_budget_leave(struct wlbd_budget *budget, uid_t uid)
{
	struct user *user = find(budget, uid);
	if (user == NULL)
		return;
	user->count--;
	budget->count--;
	remove_idle(budget, user);
}

enum wlbd_budget_answer wlbd_budget_take(struct wlbd_budget *budget, uid_t uid, size_t bytes)
{
	const struct wlbd_budget_limits *limits = &budget->limits;
	struct user *user = bytes > 0 ? find_or_add(budget, uid) : NULL;
	if (bytes == 0)
		return WLBD_BUDGET_TAKEN;
	if (user == NULL)
		return WLBD_BUDGET_FULL;
	enum wlbd_budget_answer answer = judge(has_reserve(budget, uid), bytes, user->bytes, limits->user_bytes,
	                                       budget->bytes, limits->all_bytes, limits->reserved_bytes);
	if (answer == WLBD_BUDGET_TAKEN) {
		user->bytes += bytes;
		budget->bytes += bytes;
	}
	remove_idle(budget, user);
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
