#include "coordinator/client/resolve.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"

/* Everything that getaddrinfo_a() continues to read and write after the deadline. */
struct question {
	struct gaicb request;
	struct addrinfo hints;
	char host[256];
	char port[16];
};

static struct question *question_new(const char *host, const char *port)
{
	struct question *q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	strncpy(q->host, host, sizeof(q->host) - 1);
	strncpy(q->port, port, sizeof(q->port) - 1);
	q->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
	q->request.ar_name = q->host;
	q->request.ar_service = q->port;
	q->request.ar_request = &q->hints;
	return q;
}

/* Returns EAI_INPROGRESS if the deadline came first. */
static int question_wait(struct question *q, int64_t deadline_ms)
{
	const struct gaicb *list[1] = {&q->request};
	int rc = gai_error(&q->request);
	while (rc == EAI_INPROGRESS) {
		int left_ms = wlb_clock_left_ms(deadline_ms);
		if (left_ms == 0)
			break;
		struct timespec wait = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000L};
		gai_suspend(list, 1, &wait);
		rc = gai_error(&q->request);
	}
	return rc;
}

static int resolve_by_name(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses)
{
	struct question *q = question_new(host, port);
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	if (q == NULL)
		return EAI_MEMORY;
	struct gaicb *list[1] = {&q->request};
	int rc = getaddrinfo_a(GAI_NOWAIT, list, 1, &quiet);
	if (rc == 0)
		rc = question_wait(q, deadline_ms);
	if (rc == EAI_INPROGRESS && gai_cancel(&q->request) != EAI_CANCELED)
		return EAI_AGAIN; /* a thread of the C library still uses `q` and owns it from now on */
	*addresses = q->request.ar_result;
	free(q);
	return rc == EAI_INPROGRESS ? EAI_AGAIN : rc;
}

int wlb_resolve(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses,
                struct wlb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	*addresses = NULL;
	int rc = getaddrinfo(host, port, &hints, addresses);
	if (rc == EAI_NONAME)
		rc = resolve_by_name(host, port, deadline_ms, addresses);
	if (rc == 0 && *addresses != NULL)
		return 0;
	return wlb_fail(error, "host '%s' cannot be resolved: %s", host, rc ? gai_strerror(rc) : "no address");
}
