// Takes events over HTTP with the SDK of CloudEvents, and prints what it understood: one line of JSON for each.
import { createServer } from "node:http";
import { HTTP } from "cloudevents";

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    try {
      const whole = Buffer.concat(chunks);
      const isText = /json|text|xml/.test(request.headers["content-type"] ?? "");
      const event = HTTP.toEvent({ headers: request.headers, body: isText ? whole.toString() : whole });
      const { data, data_base64, ...attributes } = event;
      event.validate();
      const isbinary = "ce-id" in request.headers;
      console.log(JSON.stringify({ attributes, isbinary, bytes: data_base64, data: data_base64 ? undefined : data }));
      response.writeHead(204).end();
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
      response.writeHead(400).end();
    }
  });
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on("end", () => process.exit(0)).resume();
