#include "coordinator/wlbd/incident/node_question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	CONFIRM_MS = 500,
	UNKNOWN_PAUSE_MS = 100,
	UNKNOWN_MAX_MS = 10000, /* then a node counts as alive whose address is not known */
};

struct wlbd_node_question {
	TAILQ_ENTRY(wlbd_node_question) link;
	struct wlbd_attempt *attempt;
	char node[256];
	int64_t began_ms;
	struct event *again;
	bool is_confirming; /* the node answered once */
	bool is_renewed;    /* another symptom arrived since: the node has to answer once more */
};

static void question_free(struct wlbd_node_question *question)
{
	TAILQ_REMOVE(&question->attempt->questions, question, link);
	event_free(question->again);
	free(question);
}

/* A node whose slurmd alone does not respond: its kernel answers, and a process of it has reported a moment ago, if
 * only how its ranks ended. */
static bool is_slurmd_alone(const struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd *wlbd = attempt->wlbd;
	const struct wlbd_reporter *reporter;
	if (!wlbd_node_silence(wlbd->node_probes, node).is_accepted)
		return false;
	/* After a restart of wlbd its processes have still time to report; after the attempt's end none reports. */
	if (attempt->unreported.due_ms != 0 || wlbd_attempt_has_ended(&attempt->incident.life))
		return true;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (strcmp(reporter->node, node) == 0 && reporter->reported_ms > 0 &&
	    wlb_clock_ms() - reporter->reported_ms < wlbd->config.silence_ms)
		return true;
	return false;
}

/* A process that is silent on a live node may compute or hang, but is not dead. */
static void store_answer(struct wlbd_attempt *attempt, const char *node, bool alive)
{
	for (int i = 0; i < attempt->incident.count; i++) {
		struct wlbd_symptom *s = &attempt->incident.symptoms[i];
		if (s->node_state != WLBD_NODE_ASKED || strcmp(s->node, node) != 0)
			continue;
		s->node_state = alive ? WLBD_NODE_ALIVE : WLBD_NODE_LOST;
		s->withdrawn = s->withdrawn || (alive && s->kind == WLBD_SILENT);
	}
	wlbd_attempt_judge_soon(attempt);
}

static void on_probed(void *context, bool alive)
{
	static const struct timeval later = {0, CONFIRM_MS * 1000};
	struct wlbd_node_question *question = context;
	if (alive && (!question->is_confirming || question->is_renewed)) {
		question->is_confirming = true;
		question->is_renewed = false;
		event_add(question->again, &later);
		return;
	}
	store_answer(question->attempt, question->node, alive || is_slurmd_alone(question->attempt, question->node));
	question_free(question);
}

/* Just after its start wlbd knows no address, and each node would count as alive. */
static void ask(struct wlbd_node_question *question)
{
	static const struct timeval pause = {0, UNKNOWN_PAUSE_MS * 1000};
	if (!wlbd_nodes_are_known(question->attempt->wlbd->nodes) &&
	    wlb_clock_ms() - question->began_ms < UNKNOWN_MAX_MS) {
		event_add(question->again, &pause);
		return;
	}
	wlbd_node_probe(question->attempt->wlbd->node_probes, question->node, question->attempt->uid, on_probed,
	                question);
}

static void on_again(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	ask(context);
}

static struct wlbd_node_question *find(struct wlbd_attempt *attempt, const char *node)
{
	struct wlbd_node_question *question;
	TAILQ_FOREACH(question, &attempt->questions, link)
	if (strcmp(question->node, node) == 0)
		return question;
	return NULL;
}

int wlbd_node_question_ask(struct wlbd_attempt *attempt, const char *node)
{
	struct wlbd_node_question *question = find(attempt, node);
	if (question != NULL) {
		question->is_renewed = true;
		return 0;
	}
	question = calloc(1, sizeof(*question));
	if (question != NULL)
		question->again = evtimer_new(attempt->wlbd->base, on_again, question);
	if (question == NULL || question->again == NULL) {
		free(question);
		return -1;
	}
	question->attempt = attempt;
	question->began_ms = wlb_clock_ms();
	snprintf(question->node, sizeof(question->node), "%s", node);
	TAILQ_INSERT_HEAD(&attempt->questions, question, link);
	ask(question);
	return 0;
}

void wlbd_node_questions_free(struct wlbd_attempts *attempts)
{
	struct wlbd_attempt *attempt;
	if (attempts == NULL)
		return;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	{
		while (!TAILQ_EMPTY(&attempt->questions))
			question_free(TAILQ_FIRST(&attempt->questions));
	}
}
