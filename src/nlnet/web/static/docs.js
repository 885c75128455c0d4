// Swagger UI on the server's own description of itself.

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  tryItOutEnabled: true,
  validatorUrl: null, // would ask a service on the internet
});
