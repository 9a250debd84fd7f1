#include "coordinator/client/resolve.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"

/* Everything that getaddrinfo_a() continues to read and write after the deadline. */
struct lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[256];
	char port[16];
};

static struct lookup *lookup_new(const char *host, const char *port)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	if (lookup == NULL)
		return NULL;
	strncpy(lookup->host, host, sizeof(lookup->host) - 1);
	strncpy(lookup->port, port, sizeof(lookup->port) - 1);
	lookup->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
	lookup->request.ar_name = lookup->host;
	lookup->request.ar_service = lookup->port;
	lookup->request.ar_request = &lookup->hints;
	return lookup;
}

/* Returns EAI_INPROGRESS if the deadline came first. */
static int lookup_wait(struct lookup *lookup, int64_t deadline_ms)
{
	const struct gaicb *list[1] = {&lookup->request};
	int rc = gai_error(&lookup->request);
	while (rc == EAI_INPROGRESS) {
		int left_ms = wlb_clock_left_ms(deadline_ms);
		if (left_ms == 0)
			break;
		struct timespec wait = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000L};
		gai_suspend(list, 1, &wait);
		rc = gai_error(&lookup->request);
	}
	return rc;
}

static int resolve_by_name(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses)
{
	struct lookup *lookup = lookup_new(host, port);
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	if (lookup == NULL)
		return EAI_MEMORY;
	struct gaicb *list[1] = {&lookup->request};
	int rc = getaddrinfo_a(GAI_NOWAIT, list, 1, &quiet);
	if (rc == 0)
		rc = lookup_wait(lookup, deadline_ms);
	if (rc == EAI_INPROGRESS && gai_cancel(&lookup->request) != EAI_CANCELED)
		return EAI_AGAIN; /* a thread of the C library still uses `lookup` and owns it from now on */
	*addresses = lookup->request.ar_result;
	free(lookup);
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
