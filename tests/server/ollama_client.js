// What Ollama's client for JavaScript gets from a server: node ollama_client.js URL, with NODE_PATH.
const { Ollama } = require('ollama')

async function main(host) {
  const client = new Ollama({ host })
  const messages = [{ role: 'user', content: 'What is 2+2?' }]
  const options = { temperature: 0 }
  const chat = (await client.chat({ model: 'ember', messages, options })).message.content
  let streamed = ''
  for await (const part of await client.chat({ model: 'ember', messages, options, stream: true })) {
    streamed += part.message.content
  }
  const names = (await client.list()).models.map((model) => model.name)
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather', parameters } }]
  const asked = [{ role: 'user', content: 'What is the weather in Paris?' }]
  const called = await client.chat({ model: 'ember', messages: asked, tools, options })
  const call = called.message.tool_calls[0].function.arguments
  const vectors = (await client.embed({ model: 'vectors', input: ['one', 'two'] })).embeddings.length
  const error = await client.chat({ model: 'nobody', messages }).catch((failure) => failure.message)
  console.log(JSON.stringify({ chat, streamed, names, call, vectors, error }))
}

main(process.argv[2])
