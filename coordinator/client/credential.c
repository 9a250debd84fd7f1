#include "coordinator/client/credential.h"

#include <stdlib.h>

#include <munge.h>

char *wlb_credential_make(const char *socket, const void *payload, int length, struct wlb_error *error)
{
	char *credential = NULL;
	munge_ctx_t context = munge_ctx_create();
	if (context == NULL) {
		wlb_fail(error, "munge: no memory for a context");
		return NULL;
	}
	munge_err_t rc = EMUNGE_SUCCESS;
	if (socket != NULL && *socket != '\0')
		rc = munge_ctx_set(context, MUNGE_OPT_SOCKET, socket);
	if (rc == EMUNGE_SUCCESS)
		rc = munge_encode(&credential, context, payload, length);
	if (rc != EMUNGE_SUCCESS) {
		const char *detail = munge_ctx_strerror(context);
		wlb_fail(error, "munge: %s; check that munged runs on this node", detail ? detail : munge_strerror(rc));
		free(credential);
		credential = NULL;
	}
	munge_ctx_destroy(context);
	return credential;
}
