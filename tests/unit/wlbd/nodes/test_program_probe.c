/* What a probe says of hosts that answer in different ways. */
#include "coordinator/wlbd/nodes/program_probe.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void note(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms)
{
	(void)took_ms;
	*(enum wlbd_probe_outcome *)context = outcome;
}

static enum wlbd_probe_outcome probe(const struct sockaddr_in *address)
{
	enum wlbd_probe_outcome outcome = WLBD_PROBE_ANSWERED;
	struct event_base *base = event_base_new();
	assert_non_null(
		wlbd_program_probe_start(base, (const struct sockaddr *)address, sizeof(*address), note, &outcome));
	event_base_dispatch(base);
	event_base_free(base);
	return outcome;
}

/* Returns a socket at a free port of this host, which listens for `backlog` connections. */
static int listen_at(struct sockaddr_in *address, int backlog)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	assert_int_equal(bind(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static void a_kernel_that_refuses(void **state)
{
	struct sockaddr_in address;
	(void)state;
	close(listen_at(&address, 1));
	assert_int_equal(probe(&address), WLBD_PROBE_REFUSED);
}

static void a_program_that_is_stopped(void **state)
{
	struct sockaddr_in address;
	(void)state;
	int fd = listen_at(&address, 1);
	assert_int_equal(probe(&address), WLBD_PROBE_ACCEPTED);
	close(fd);
}

/* The kernel drops what a full queue has no place for. */
static void a_host_that_does_not_answer(void **state)
{
	struct sockaddr_in address;
	int waiting[2];
	(void)state;
	int fd = listen_at(&address, 0);
	for (int i = 0; i < 2; i++) {
		waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(waiting[i], (const struct sockaddr *)&address, sizeof(address));
	}
	assert_int_equal(probe(&address), WLBD_PROBE_FAILED);
	close(waiting[0]);
	close(waiting[1]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_that_refuses),
		cmocka_unit_test(a_program_that_is_stopped),
		cmocka_unit_test(a_host_that_does_not_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
