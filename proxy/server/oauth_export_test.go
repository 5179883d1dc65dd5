package server

import "aegis/proxy/oauth/client"

// FetchDocumentsBy lets a test stand in for the internet that client documents
// are fetched from. Call it before serving.
func FetchDocumentsBy(s *Server, change func(*client.Options)) { s.state.documents = change }
