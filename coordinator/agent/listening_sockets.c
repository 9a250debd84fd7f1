#include "coordinator/agent/listening_sockets.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	SOCKETS_MAX = 65536, /* that are looked at; the kernel lists those that listen first */
	LISTENS = 0x0A,      /* TCP_LISTEN, as the kernel writes it */
	WORDS = 4,           /* of an IPv6 address */
};

/* Words of 32 bits, as they are in memory: so the kernel writes them. */
struct place {
	uint32_t words[WORDS];
	int count; /* 1: IPv4, WORDS: IPv6 */
	unsigned port;
};

/* An address of IPv4 that is written as one of IPv6 is the same place. */
static void unmap(struct place *place)
{
	if (place->count != WORDS || place->words[0] != 0 || place->words[1] != 0 || place->words[2] != htonl(0xffff))
		return;
	place->count = 1;
	place->words[0] = place->words[3];
}

static bool place_of(const struct sockaddr *address, struct place *place)
{
	*place = (struct place){.count = address->sa_family == AF_INET ? 1 : WORDS};
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
		memcpy(place->words, &v4->sin_addr, sizeof(v4->sin_addr));
		place->port = ntohs(v4->sin_port);
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
		memcpy(place->words, &v6->sin6_addr, sizeof(v6->sin6_addr));
		place->port = ntohs(v6->sin6_port);
		unmap(place);
	}
	return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

/* Whether a connection to the address may come to a socket that listens at `bound`: at the address itself, or at all.
 * One of IPv6 at all addresses has IPv4's too. */
static bool accepts(const struct place *bound, const struct place *address)
{
	static const uint32_t all[WORDS];
	size_t bytes = (size_t)bound->count * sizeof(bound->words[0]);
	bool is_for_all = memcmp(bound->words, all, bytes) == 0 && bound->count >= address->count;
	bool is_same = bound->count == address->count && memcmp(bound->words, address->words, bytes) == 0;
	return bound->port == address->port && (is_for_all || is_same);
}

/* Reads "  0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 ...". Returns false for
 * another line, as the first. */
static bool read_socket(const char *line, int count, struct place *bound, unsigned *state, unsigned *uid)
{
	char address[33], format[96];
	snprintf(format, sizeof(format), " %%*d: %%%d[0-9A-F]:%%x %%*[0-9A-F]:%%*x %%x %%*x:%%*x %%*x:%%*x %%*x %%u",
	         8 * count);
	*bound = (struct place){.count = count};
	if (sscanf(line, format, address, &bound->port, state, uid) != 4 || strlen(address) != 8U * (unsigned)count)
		return false;
	for (int i = 0; i < count; i++)
		if (sscanf(address + 8 * i, "%8x", &bound->words[i]) != 1)
			return false;
	unmap(bound);
	return true;
}

/* Counts the sockets that listen at the address. Returns false where there are too many to look at. A kernel without
 * IPv6 has no file for it. */
static bool count_listeners(const char *path, int count, const struct place *address, uid_t uid, int *own, int *others)
{
	char line[512];
	struct place bound;
	unsigned state, owner;
	FILE *file = fopen(path, "re");
	int sockets = 0;
	while (file != NULL && sockets < SOCKETS_MAX && fgets(line, sizeof(line), file) != NULL) {
		sockets++;
		if (!read_socket(line, count, &bound, &state, &owner) || state != LISTENS || !accepts(&bound, address))
			continue;
		*own += owner == uid;
		*others += owner != uid;
	}
	if (file != NULL)
		fclose(file);
	return sockets < SOCKETS_MAX;
}

bool wlb_listening_user_is(const struct sockaddr *address, uid_t uid)
{
	struct place place;
	int own = 0, others = 0;
	return place_of(address, &place) && count_listeners("/proc/net/tcp", 1, &place, uid, &own, &others) &&
	       count_listeners("/proc/net/tcp6", WORDS, &place, uid, &own, &others) && own > 0 && others == 0;
}
